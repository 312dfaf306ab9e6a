package fleet_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetquota/fleetquota/hack/fleet/fleet"
)

// ownedDir names the folder in which this test binary, started by a test, is
// the owner of a fleet instead of running tests.
const ownedDir = "FLEET_TEST_OWNED_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownedDir); dir != "" {
		os.Exit(ownUntilKilled(dir))
	}
	os.Exit(m.Run())
}

func ownUntilKilled(dir string) int {
	f, err := fleet.New(fleet.Options{Dir: dir, Owned: true})
	if err == nil {
		err = f.Up(context.Background(), fleet.Spec{Name: "a"})
	}
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return 1
	}
	fmt.Fprintln(os.Stdout, "up")
	time.Sleep(10 * time.Minute)
	return 0
}

// start brings up one cluster that ends with the test.
func start(t *testing.T, dir string, spec fleet.Spec) (*fleet.Fleet, *fleet.Cluster) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real cluster")
	}
	f, err := fleet.New(fleet.Options{Dir: dir, Owned: true, Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Down(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := f.Up(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	c, err := f.Cluster(spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	return f, c
}

// client talks to the cluster and gives up after one second.
func client(t *testing.T, c *fleet.Cluster) *kubernetes.Clientset {
	t.Helper()
	config, err := c.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout = time.Second
	return kubernetes.NewForConfigOrDie(config)
}

// pids reads which processes a folder's clusters run on.
func pids(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.pid"))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pid, _, _ := strings.Cut(string(text), "\n")
		list = append(list, pid)
	}
	return list
}

// runs says whether a process is there and more than a zombie.
func runs(pid string) bool {
	out, err := exec.CommandContext(context.Background(), "ps", "-o", "stat=", "-p", pid).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func awaitGone(t *testing.T, list []string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for slices.ContainsFunc(list, runs) {
		if time.Now().After(deadline) {
			t.Fatalf("some of the processes %v still run", list)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestALifeOfACluster(t *testing.T) {
	dir := t.TempDir()
	f, c := start(t, dir, fleet.Spec{Name: "eu-1", NativeQuota: true})
	api := client(t, c)
	namespaces := api.CoreV1().Namespaces()
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}
	if _, err := namespaces.Create(t.Context(), team, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	t.Run("a frozen cluster answers nothing until it is thawed", func(t *testing.T) {
		must(t, c.Freeze(t.Context()))
		wantStatus(t, c, fleet.Frozen)
		if _, err := namespaces.Get(t.Context(), "team-a", metav1.GetOptions{}); err == nil {
			t.Error("it answers")
		}
		must(t, c.Thaw(t.Context()))
		eventually(t, func() error {
			_, err := namespaces.Get(t.Context(), "team-a", metav1.GetOptions{})
			return err
		})
	})
	t.Run("its native quota controller counts, until stopped", func(t *testing.T) {
		awaitQuota(t, api, "first")
		must(t, c.StopNativeQuota(t.Context()))
		must(t, c.StartNativeQuota(t.Context()))
		awaitQuota(t, api, "second")
		must(t, c.StopNativeQuota(t.Context()))
	})
	t.Run("a restart keeps data, address and credentials", func(t *testing.T) {
		must(t, c.Restart(t.Context()))
		_, err := namespaces.Get(t.Context(), "team-a", metav1.GetOptions{})
		must(t, err)
		must(t, c.Kill(t.Context()))
		wantStatus(t, c, fleet.Stopped)
		must(t, c.Restart(t.Context()))
		_, err = namespaces.Get(t.Context(), "team-a", metav1.GetOptions{})
		must(t, err)
	})
	t.Run("users and service accounts are who they say", func(t *testing.T) { checkIdentities(t, c) })
	t.Run("the audit log counts writes", func(t *testing.T) {
		eventually(t, func() error {
			if n := creations(t, c.AuditLog(), "team-a"); n != 1 {
				return fmt.Errorf("%d creations of the namespace are in the log, want 1", n)
			}
			return nil
		})
	})
	t.Run("a second Up leaves it alone", func(t *testing.T) {
		before := pids(t, dir)
		must(t, f.Up(t.Context(), fleet.Spec{Name: "eu-1"}))
		if after := pids(t, dir); !slices.Equal(before, after) {
			t.Errorf("processes were %v and are %v", before, after)
		}
	})
	t.Run("nothing is left of it", func(t *testing.T) {
		list := pids(t, dir)
		must(t, f.Down(t.Context()))
		if len(list) != 2 || slices.ContainsFunc(list, runs) {
			t.Errorf("some of the processes %v still run", list)
		}
		if _, err := os.Stat(c.Dir()); err == nil {
			t.Error("its folder is still there")
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func wantStatus(t *testing.T, c *fleet.Cluster, want fleet.Status) {
	t.Helper()
	eventually(t, func() error {
		info, err := c.Info(t.Context())
		if err == nil && info.Status != want {
			err = fmt.Errorf("cluster %s is %s, want %s", c.Name(), info.Status, want)
		}
		return err
	})
}

// awaitQuota makes a quota and waits until the native controller fills it in.
func awaitQuota(t *testing.T, api *kubernetes.Clientset, name string) {
	t.Helper()
	quotas := api.CoreV1().ResourceQuotas("team-a")
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, func() error {
		quota, err := quotas.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && len(quota.Status.Used) == 0 {
			err = fmt.Errorf("quota %s is not counted", name)
		}
		return err
	})
}

func checkIdentities(t *testing.T, c *fleet.Cluster) {
	t.Helper()
	text, err := c.Kubeconfig("bob", "dev")
	must(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	must(t, err)
	if got := whoami(t, config); got.Username != "bob" || !slices.Contains(got.Groups, "dev") {
		t.Errorf("the certificate is for %+v", got)
	}

	accounts := client(t, c).CoreV1().ServiceAccounts("team-a")
	robot := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	_, err = accounts.Create(t.Context(), robot, metav1.CreateOptions{})
	must(t, err)
	token, err := accounts.CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token.Status.Token
	if got := whoami(t, config); got.Username != "system:serviceaccount:team-a:robot" {
		t.Errorf("the token is for %+v", got)
	}
}

func whoami(t *testing.T, config *rest.Config) authenticationv1.UserInfo {
	t.Helper()
	reviews := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews()
	review, err := reviews.Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	must(t, err)
	return review.Status.UserInfo
}

// creations counts how often the log says that a namespace was created.
func creations(t *testing.T, log, namespace string) int {
	t.Helper()
	file, err := os.Open(log)
	must(t, err)
	defer file.Close()
	count := 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb      string
			ObjectRef struct{ Resource, Name string }
		}
		must(t, json.Unmarshal(lines.Bytes(), &event))
		if event.Verb == "create" && event.ObjectRef.Resource == "namespaces" && event.ObjectRef.Name == namespace {
			count++
		}
	}
	must(t, lines.Err())
	return count
}

func TestACrashOfTheOwnerLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real cluster")
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	dir := t.TempDir()
	owner := exec.CommandContext(t.Context(), os.Args[0])
	owner.Env = append(os.Environ(), ownedDir+"="+dir)
	out, err := owner.StdoutPipe()
	must(t, err)
	must(t, owner.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
		t.Fatalf("the owner says %q, %v", line, err)
	}
	list := pids(t, dir)
	if len(list) != 2 || !runs(list[0]) || !runs(list[1]) {
		t.Fatalf("the processes %v do not run", list)
	}
	must(t, owner.Process.Kill())
	_ = owner.Wait()
	awaitGone(t, list)

	// And the next one starts over with the same data.
	_, c := start(t, dir, fleet.Spec{Name: "a"})
	wantStatus(t, c, fleet.Running)
}

func TestAFailedStartStopsTheOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real cluster")
	}
	dir := t.TempDir()
	f, err := fleet.New(fleet.Options{Dir: dir, Owned: true})
	must(t, err)
	err = f.Up(t.Context(), fleet.Spec{Name: "good"}, fleet.Spec{Name: "bad", ExtraArgs: []string{"--no-such-flag=1"}})
	if err == nil || !strings.Contains(err.Error(), "start cluster bad: kube-apiserver ended: exit status 1") {
		t.Fatalf("got %v", err)
	}
	if list := pids(t, dir); len(list) != 0 {
		t.Errorf("the processes %v are left", list)
	}
	for _, c := range f.Clusters() {
		wantStatus(t, c, fleet.Stopped)
	}
	must(t, f.Down(t.Context()))
}
