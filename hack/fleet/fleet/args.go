package fleet

import (
	"path/filepath"
	"strconv"
)

// Files of a local cluster beside its programs' logs and records.
const (
	auditPolicyFile   = "audit-policy.yaml"
	auditLogFile      = "audit.log"
	adminKubeconfig   = "admin.kubeconfig"
	managerKubeconfig = "controller-manager.kubeconfig"
)

// auditPolicy logs one line for each write and stays silent about the rest.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["*"]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

func etcdURL(port int) string { return "http://" + loopback(port) }

func etcdArgs(dir string, s state) []string {
	client, peer := etcdURL(s.Ports.Etcd), etcdURL(s.Ports.EtcdPeer)
	return []string{
		"--name=" + s.Name,
		"--data-dir=" + filepath.Join(dir, "data"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + s.Name + "=" + peer,
		// A killed process loses nothing that the kernel has; only a crash of
		// the machine would.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func apiServerArgs(dir string, s state) []string {
	pki := func(name string) string { return filepath.Join(dir, pkiFolder, name) }
	args := []string{
		"--etcd-servers=" + etcdURL(s.Ports.Etcd),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(s.Ports.API),
		"--endpoint-reconciler-type=none", // endpoints on loopback are refused
		"--tls-cert-file=" + pki(servingCert),
		"--tls-private-key-file=" + pki(servingKey),
		"--client-ca-file=" + pki(caCert),
		"--cert-dir=" + filepath.Join(dir, pkiFolder),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + pki(accountsKey),
		"--service-account-signing-key-file=" + pki(accountsKey),
		"--service-cluster-ip-range=" + serviceRange,
		"--disable-admission-plugins=ServiceAccount", // nobody makes the account default
		"--allow-privileged=true",
		"--audit-policy-file=" + filepath.Join(dir, auditPolicyFile),
		"--audit-log-path=" + filepath.Join(dir, auditLogFile),
	}
	return append(args, s.ExtraArgs...)
}

func managerArgs(dir string, s state) []string {
	args := []string{
		"--kubeconfig=" + filepath.Join(dir, managerKubeconfig),
		"--controllers=resourcequota-controller",
		"--use-service-account-credentials=true", // the role for quota status belongs to that account
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(s.Ports.Manager),
		"--cert-dir=" + filepath.Join(dir, "controller-manager"),
	}
	return append(args, s.NativeArgs...)
}
