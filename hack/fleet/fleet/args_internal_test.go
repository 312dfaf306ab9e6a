package fleet

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestProgramsListenOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	s := state{Name: "eu-1", Ports: ports{API: 20001, Etcd: 20002, EtcdPeer: 20003, Manager: 20004}}
	for program, tc := range map[string]struct {
		args []string
		want []string
	}{
		etcd: {etcdArgs("/f/eu-1", s), []string{
			"--listen-client-urls=http://127.0.0.1:20002", "--listen-peer-urls=http://127.0.0.1:20003",
			"--data-dir=/f/eu-1/data", "--unsafe-no-fsync",
		}},
		apiServer: {apiServerArgs("/f/eu-1", s), []string{
			"--bind-address=127.0.0.1", "--secure-port=20001", "--etcd-servers=http://127.0.0.1:20002",
			"--endpoint-reconciler-type=none", "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
			"--audit-log-path=/f/eu-1/audit.log",
		}},
		manager: {managerArgs("/f/eu-1", s), []string{
			"--bind-address=127.0.0.1", "--secure-port=20004", "--controllers=resourcequota-controller",
			"--kubeconfig=/f/eu-1/controller-manager.kubeconfig",
		}},
	} {
		for _, want := range tc.want {
			if !slices.Contains(tc.args, want) {
				t.Errorf("%s is started without %s: %v", program, want, tc.args)
			}
		}
	}
}

func TestExtraArgumentsComeLast(t *testing.T) {
	t.Parallel()
	args := apiServerArgs("/f", state{ExtraArgs: []string{"--secure-port=1", "--v=4"}})
	if got := strings.Join(args[len(args)-2:], " "); got != "--secure-port=1 --v=4" {
		t.Errorf("the last arguments of kube-apiserver are %q", got)
	}
	args = managerArgs("/f", state{NativeArgs: []string{"--v=5"}})
	if got := args[len(args)-1]; got != "--v=5" {
		t.Errorf("the last argument of kube-controller-manager is %q", got)
	}
}

func TestKubeconfigHoldsACertificateForTheUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := writePKI(dir, "eu-1"); err != nil {
		t.Fatal(err)
	}
	ca, err := loadAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := ca.kubeconfigFor("eu-1", "https://127.0.0.1:1", "bob", []string{"dev", "ops"})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(config.CertData)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	if _, err := cert.Verify(x509.VerifyOptions{
		Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		t.Error(err)
	}
	if cert.Subject.CommonName != "bob" || !slices.Equal(cert.Subject.Organization, []string{"dev", "ops"}) {
		t.Errorf("the certificate is for %v", cert.Subject)
	}
}

func TestKeysStayOnceTheyExist(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var keys [2]string
	for i := range keys {
		if err := writePKI(dir, "eu-1"); err != nil {
			t.Fatal(err)
		}
		ca, err := loadAuthority(dir)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = string(ca.pem.key)
	}
	if keys[0] != keys[1] {
		t.Error("the second call made another CA")
	}
}
