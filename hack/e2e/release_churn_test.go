package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// The limit, and who works against it for how long.
const (
	churnLimit   = 10
	churnWorkers = 24
	churnTime    = 20 * time.Second
)

// churnRun is one namespace with one quota, and workers who create and delete
// pods in it as fast as they may.
type churnRun struct {
	who       string
	member    *scene.Cluster
	namespace string
	upstream  bool
	failing   int // one creation in so many fails after it was charged; 0: none
	meanwhile func() error

	created, failed, denied, other atomic.Int64
	lastOther                      atomic.Value
	most                           int // that count
	mostStored                     int // and with those whose deletion is under way
	took                           time.Duration
	settled                        time.Duration
	mostUsed                       int64
	left                           string
}

func (c *churnRun) perSecond() float64 { return float64(c.created.Load()) / c.took.Seconds() }

// TestFaultChurnNeverPassesTheLimit works against `pods: 10` under Kubernetes'
// own quota controller and under ours. Recounting can lower a status below what
// admission has just charged for; ours must not, must not be slow for that, and
// must not keep for ever what failed creations were charged.
func TestFaultChurnNeverPassesTheLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("several minutes")
	}
	ctx := t.Context()
	s, err := scene.Start(ctx, scene.Options{Dir: t.TempDir(), Members: []string{"native", "ours"}, Native: []string{"native"}, Owned: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	hub := startChurnHub(t, s)
	if err := s.Register(ctx, s.Member("ours"), scene.Registration{LocalStatus: "Always"}); err != nil {
		t.Fatal(err)
	}
	restart := func() error {
		if err := hub.Kill(); err != nil {
			return err
		}
		hub = startChurnHub(t, s)
		return nil
	}
	runs := []*churnRun{
		{who: "upstream", upstream: true, member: s.Member("native"), namespace: "plain"},
		{who: "ours", member: s.Member("ours"), namespace: "plain"},
		{who: "upstream, 1 % fail after the charge", upstream: true, member: s.Member("native"), namespace: "failing", failing: 100},
		{who: "ours, 1 % fail after the charge", member: s.Member("ours"), namespace: "failing", failing: 100},
		{who: "ours, the same, hub killed half-way", member: s.Member("ours"), namespace: "killed", failing: 100, meanwhile: restart},
	}
	for _, run := range runs {
		if err := run.run(ctx); err != nil {
			t.Fatalf("%s: %v", run.who, err)
		}
	}
	printChurn(t, runs)
	upstream, ours, upstreamFailing, failing, killed := runs[0], runs[1], runs[2], runs[3], runs[4]
	for _, run := range []*churnRun{ours, failing, killed} {
		if run.most > churnLimit {
			t.Errorf("%s: %d pods at one time, of %d", run.who, run.most, churnLimit)
		}
	}
	if ours.perSecond() < upstream.perSecond()/2 {
		t.Errorf("ours let %.0f pods per second through, not half of upstream's %.0f", ours.perSecond(), upstream.perSecond())
	}
	if failing.perSecond() < upstreamFailing.perSecond()*0.15 {
		t.Errorf("with failures ours let %.0f pods per second through, not 15 %% of upstream's %.0f", failing.perSecond(), upstreamFailing.perSecond())
	}
	if err := hub.Ended(); err != nil {
		t.Error(err)
	}
}

func startChurnHub(t *testing.T, s *scene.Scene) *scene.Process {
	t.Helper()
	hub, err := s.StartHub(t.Context(), "--leader-elect=false")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hub.Kill(); err != nil {
			t.Error(err)
		}
		if log, err := os.ReadFile(hub.Log); t.Failed() && err == nil {
			const tail = 4000
			t.Logf("the hub's log ends:\n%s", log[max(0, len(log)-tail):])
		}
	})
	return hub
}

// right is how long used took to be what is there.
func (c *churnRun) right() string {
	if c.settled < 0 {
		return "not within 5 s"
	}
	return fmt.Sprintf("%.1f s", c.settled.Seconds())
}

func printChurn(t *testing.T, runs []*churnRun) {
	t.Helper()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "controller\tmost pods of "+strconv.Itoa(churnLimit)+"\twith those being deleted\tmost used\tcreated per s\tfailed after the charge\tdenied\tother errors\tused right after quiet of")
	for _, r := range runs {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%.0f\t%d\t%d\t%d\t%s\n", r.who, r.most, r.mostStored, r.mostUsed, r.perSecond(), r.failed.Load(), r.denied.Load(), r.other.Load(), r.right())
	}
	if err := table.Flush(); err != nil {
		t.Error(err)
	}
	for _, r := range runs {
		t.Logf("%s: at the end %s", r.who, r.left)
		if err := r.lastOther.Load(); err != nil {
			t.Logf("%s: last other error: %v", r.who, err)
		}
	}
}

// run plays the whole run, and waits until used is what is there.
func (c *churnRun) run(ctx context.Context) error {
	if err := c.furnish(ctx); err != nil {
		return err
	}
	stop, err := c.count(ctx)
	if err != nil {
		return err
	}
	c.work(ctx)
	quiet := time.Now()
	if err := c.used(ctx, 0); err != nil {
		c.left = err.Error()
	}
	patience := 2 * time.Minute
	if c.upstream {
		patience = 5 * time.Second // it repairs the rest after 5 minutes
	}
	err = scene.Eventually(ctx, patience, func(ctx context.Context) error { return c.used(ctx, 0) })
	c.settled = time.Since(quiet)
	stop()
	if err != nil && c.upstream {
		c.settled = -1
		return nil
	}
	if err != nil {
		return fmt.Errorf("used is not right after %s of quiet: %w", patience, err)
	}
	return nil
}

// furnish makes the namespace, a pod that has finished and so costs nothing,
// whose name is taken, and the quota.
func (c *churnRun) furnish(ctx context.Context) error {
	if err := c.member.CreateNamespace(ctx, c.namespace); err != nil {
		return err
	}
	pods := c.member.Kubernetes.CoreV1().Pods(c.namespace)
	taken, err := pods.Create(ctx, churnPod("taken"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	taken.Status.Phase = corev1.PodSucceeded
	if _, err := pods.UpdateStatus(ctx, taken, metav1.UpdateOptions{}); err != nil {
		return err
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(churnLimit, resource.DecimalSI)},
	}}
	if _, err := c.member.Kubernetes.CoreV1().ResourceQuotas(c.namespace).Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		return err
	}
	const patience = 30 * time.Second
	return scene.Eventually(ctx, patience, func(ctx context.Context) error { return c.used(ctx, 0) })
}

func churnPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
}

// used checks what the quota says.
func (c *churnRun) used(ctx context.Context, want int64) error {
	quota, err := c.member.Kubernetes.CoreV1().ResourceQuotas(c.namespace).Get(ctx, "q", metav1.GetOptions{})
	if err != nil {
		return err
	}
	used, known := quota.Status.Used[corev1.ResourcePods]
	if !known || used.Value() != want || len(quota.Status.Hard) == 0 {
		return fmt.Errorf("status is %v, want %d used", quota.Status, want)
	}
	return nil
}

// count notes, from one watch of the pods, how many there are at most, and from
// another what the quota says is used.
func (c *churnRun) count(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	pods, err := c.member.Kubernetes.CoreV1().Pods(c.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		return nil, err
	}
	quotas, err := c.member.Kubernetes.CoreV1().ResourceQuotas(c.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		return nil, err
	}
	var group sync.WaitGroup
	group.Go(func() { c.countPods(pods) })
	group.Go(func() { c.noteUsed(quotas) })
	return func() {
		cancel()
		pods.Stop()
		quotas.Stop()
		group.Wait()
	}, nil
}

// countPods counts as quota does: a pod that is marked as deleted, with no grace
// left, counts no more, though it is stored for some milliseconds.
func (c *churnRun) countPods(pods watch.Interface) {
	there, stored := map[string]struct{}{}, map[string]struct{}{}
	for event := range pods.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		stored[pod.Name], there[pod.Name] = struct{}{}, struct{}{}
		if pod.DeletionTimestamp != nil { // its grace is none
			delete(there, pod.Name)
		}
		if event.Type == watch.Deleted {
			delete(there, pod.Name)
			delete(stored, pod.Name)
		}
		c.most, c.mostStored = max(c.most, len(there)), max(c.mostStored, len(stored))
	}
}

func (c *churnRun) noteUsed(quotas watch.Interface) {
	for event := range quotas.ResultChan() {
		if quota, ok := event.Object.(*corev1.ResourceQuota); ok {
			used := quota.Status.Used[corev1.ResourcePods]
			c.mostUsed = max(c.mostUsed, used.Value())
		}
	}
}

// work lets all workers work for the time, and returns when all their pods are
// deleted.
func (c *churnRun) work(ctx context.Context) {
	began := time.Now()
	var group sync.WaitGroup
	for worker := range churnWorkers {
		group.Go(func() {
			for i := 0; time.Since(began) < churnTime && ctx.Err() == nil; i++ {
				c.create(ctx, fmt.Sprintf("w%d-%d", worker, i))
			}
		})
	}
	if c.meanwhile != nil {
		churnPause(ctx, churnTime/2)
		if err := c.meanwhile(); err != nil {
			c.noteOther(err)
		}
	}
	group.Wait()
	c.took = time.Since(began)
}

// create makes a pod, keeps it for a moment and deletes it. Now and then it
// asks for a name that is taken, which is found out only after the charge.
func (c *churnRun) create(ctx context.Context, name string) {
	const most = 50 * time.Millisecond
	failing := c.failing > 0 && rand.N(c.failing) == 0
	if failing {
		name = "taken"
	}
	pods := c.member.Kubernetes.CoreV1().Pods(c.namespace)
	_, err := pods.Create(ctx, churnPod(name), metav1.CreateOptions{})
	switch {
	case err == nil:
		c.created.Add(1)
	case apierrors.IsAlreadyExists(err):
		c.failed.Add(1)
		return
	case apierrors.IsForbidden(err):
		c.denied.Add(1)
		churnPause(ctx, rand.N(most))
		return
	default:
		c.noteOther(err)
		return
	}
	churnPause(ctx, rand.N(most))
	now := metav1.NewDeleteOptions(0)
	if err := pods.Delete(ctx, name, *now); err != nil {
		c.noteOther(err)
	}
}

func (c *churnRun) noteOther(err error) {
	c.other.Add(1)
	c.lastOther.Store(err.Error())
}

func churnPause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
