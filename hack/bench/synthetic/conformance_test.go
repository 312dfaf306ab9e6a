package synthetic_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetquota/fleetquota/hack/bench/synthetic"
	"github.com/fleetquota/fleetquota/hack/fleet/fleet"
)

// world is one API server with the same objects as any other: 90 pods in three
// namespaces, two services and a quota.
type world struct {
	config *rest.Config
	add    func(t *testing.T) (number uint32) // the next pod
	finish func(t *testing.T, number uint32)
	remove func(t *testing.T, number uint32)
	age    func(t *testing.T, list runtime.Object) // until the version of a list is too old to continue it
}

const (
	podsAtFirst = 90
	namespaces  = 3
)

// The same requests to a synthetic member and to kube-apiserver get the same
// answers.
func TestConformance(t *testing.T) {
	synth, member := syntheticWorld(t)
	actual := realWorld(t, member)
	requests := map[string]func(s *transcript, w world){
		"lists": lists, "lists in chunks": chunks, "lists at versions": versions, "what is refused": refusals,
		"watches that begin with what there is": initials, "watches of what happens": happenings, "the end of watches": ends,
		"an expired continue token": expiry, "reflectors": reflectors, "the status of quotas": quotas, "discovery": discoveries,
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		t.Run(name, func(t *testing.T) {
			var said [2][]string
			var both sync.WaitGroup
			for i, w := range []world{synth, actual} {
				s := newTranscript(t, w.config)
				both.Go(func() {
					requests[name](s, w)
					said[i] = s.lines
				})
			}
			both.Wait()
			compare(t, said[0], said[1])
		})
	}
}

// compare shows where two transcripts part.
func compare(t *testing.T, ours, theirs []string) {
	t.Helper()
	for i := range max(len(ours), len(theirs)) {
		a, b := "(nothing)", "(nothing)"
		if i < len(ours) {
			a = ours[i]
		}
		if i < len(theirs) {
			b = theirs[i]
		}
		if a != b {
			from := max(0, i-8)
			t.Fatalf("line %d, after\n%s\nsynthetic:      %s\nkube-apiserver: %s", i, strings.Join(ours[min(from, len(ours)):min(i, len(ours))], "\n"), a, b)
		}
	}
	if len(ours) == 0 && !t.Failed() {
		t.Fatal("nothing was asked")
	}
	if os.Getenv("TRANSCRIPT") != "" {
		t.Log(strings.Join(ours, "\n"))
	}
}

func syntheticWorld(t *testing.T) (world, *synthetic.Member) {
	t.Helper()
	f, err := synthetic.Start(t.Context(), synthetic.Options{Pods: podsAtFirst, Namespaces: namespaces, Services: 2, Quotas: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	m := f.Members[0]
	kubeconfig, err := f.Kubeconfig(m)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return world{
		config: config,
		add:    func(*testing.T) uint32 { return m.Add() },
		finish: func(_ *testing.T, number uint32) { m.Finish(number) },
		remove: func(_ *testing.T, number uint32) { m.Remove(number) },
		age:    func(*testing.T, runtime.Object) { m.Forget() },
	}, m
}

// realWorld starts kube-apiserver and makes there what a synthetic member has.
func realWorld(t *testing.T, like *synthetic.Member) world {
	t.Helper()
	clusters, err := fleet.New(fleet.Options{Dir: t.TempDir(), Owned: true})
	if err != nil {
		t.Fatal(err)
	}
	const forget = "--etcd-compaction-interval=4s"
	if err := clusters.Up(t.Context(), fleet.Spec{Name: "real", ExtraArgs: []string{forget}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clusters.Down(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	cluster, err := clusters.Cluster("real")
	if err != nil {
		t.Fatal(err)
	}
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	core := kubernetes.NewForConfigOrDie(config).CoreV1()
	w := world{config: config}
	next := uint32(0)
	w.add = func(t *testing.T) uint32 {
		t.Helper()
		makePod(t, config, like.Pod(next))
		next++
		return next - 1
	}
	w.finish = func(t *testing.T, number uint32) {
		t.Helper()
		want := like.Finished(number)
		pod, err := core.Pods(want.Namespace).Get(t.Context(), want.Name, metav1.GetOptions{})
		must(t, err)
		pod.Status = want.Status
		_, err = core.Pods(want.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		must(t, err)
	}
	w.remove = func(t *testing.T, number uint32) {
		t.Helper()
		pod := like.Pod(number)
		must(t, core.Pods(pod.Namespace).Delete(t.Context(), pod.Name, *metav1.NewDeleteOptions(0)))
	}
	w.age = func(t *testing.T, list runtime.Object) {
		t.Helper()
		awaitCompaction(t, w, list)
	}
	for i := range namespaces {
		name := fmt.Sprintf("team-%03d", i)
		_, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
		for n := range 2 {
			service := like.Service(name, n)
			service.ObjectMeta = metav1.ObjectMeta{Name: service.Name}
			service.Spec.ClusterIP = ""
			_, err := core.Services(name).Create(t.Context(), service, metav1.CreateOptions{})
			must(t, err)
		}
		quota := like.Quota(name)
		quota.ObjectMeta = metav1.ObjectMeta{Name: quota.Name}
		_, err = core.ResourceQuotas(name).Create(t.Context(), quota, metav1.CreateOptions{})
		must(t, err)
	}
	for range podsAtFirst {
		w.add(t)
	}
	must(t, cluster.Restart(t.Context())) // so that it remembers nothing of all this
	return w
}

// makePod makes a pod. It never runs, which transcripts do not tell. Admission has to have seen its quota,
// and somebody to have counted that: nobody does, so the quota is made to have
// been counted.
func makePod(t *testing.T, config *rest.Config, want *corev1.Pod) {
	t.Helper()
	core := kubernetes.NewForConfigOrDie(config).CoreV1()
	made := want.DeepCopy()
	made.ObjectMeta = metav1.ObjectMeta{Name: want.Name, Labels: want.Labels, Annotations: want.Annotations}
	made.Spec.NodeName = ""
	made.Spec.Priority = nil
	_, err := core.Pods(want.Namespace).Create(t.Context(), made, metav1.CreateOptions{})
	for tries := 0; err != nil && tries < 50; tries++ {
		countQuota(t, config, want.Namespace)
		time.Sleep(100 * time.Millisecond)
		_, err = core.Pods(want.Namespace).Create(t.Context(), made, metav1.CreateOptions{})
	}
	must(t, err)
}

func countQuota(t *testing.T, config *rest.Config, namespace string) {
	t.Helper()
	quotas := kubernetes.NewForConfigOrDie(config).CoreV1().ResourceQuotas(namespace)
	quota, err := quotas.Get(t.Context(), "compute", metav1.GetOptions{})
	must(t, err)
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{}
	for name := range quota.Spec.Hard {
		quota.Status.Used[name] = resource.MustParse("0")
	}
	_, err = quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{})
	must(t, err)
}

// awaitCompaction waits until etcd has forgotten the version of a list, which
// takes a change now and then.
func awaitCompaction(t *testing.T, w world, list runtime.Object) {
	t.Helper()
	accessor, err := meta.ListAccessor(list)
	must(t, err)
	pods := kubernetes.NewForConfigOrDie(w.config).CoreV1().Pods("")
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		_, err := pods.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: accessor.GetContinue()})
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Error("etcd does not forget")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	allPods   = "/api/v1/pods"
	somePods  = "/api/v1/namespaces/team-001/pods"
	future    = "999999999999"
	initially = "sendInitialEvents"
	match     = "resourceVersionMatch"
	version   = "resourceVersion"
)

func lists(s *transcript, _ world) {
	for _, f := range listForms() {
		s.get(allPods, with(), f)
		s.get(somePods, with(version, "0"), f)
		s.get(allPods, with("fieldSelector", "metadata.namespace=team-002"), f)
		s.get("/api/v1/namespaces", with(), f)
		s.get("/api/v1/namespaces", with("fieldSelector", "metadata.name=kube-system"), f)
		s.get("/api/v1/namespaces/team-000/services", with(), f)
		s.get("/api/v1/resourcequotas", with(), f)
		s.get("/apis/apps/v1/deployments", with(), f)
		s.get("/api/v1/configmaps", with("fieldSelector", "metadata.namespace=team-000"), f)
	}
	for _, f := range watchForms() {
		s.get("/api/v1/namespaces/kube-system", with(), f)
		s.get("/api/v1/namespaces/team-000/resourcequotas/compute", with(), f)
	}
}

// chunks continues lists to their end.
func chunks(s *transcript, _ world) {
	for _, f := range listForms() {
		for _, path := range []string{allPods, somePods} {
			query := with("limit", "17")
			for range 10 {
				list, err := meta.ListAccessor(s.get(path, query, f))
				must(s.t, err)
				if list.GetContinue() == "" {
					break
				}
				query.Set("continue", list.GetContinue())
				s.lines[len(s.lines)-1] += " and on"
			}
		}
		s.get(allPods, with("limit", "17", version, "0"), f)
		s.get(somePods, with("limit", "20"), f)
	}
	s.lines = withoutTokens(s.lines)
}

func withoutTokens(lines []string) []string {
	for i, line := range lines {
		if before, after, found := strings.Cut(line, "continue="); found {
			_, rest, _ := strings.Cut(after, "&")
			lines[i] = before + "continue=...&" + rest
		}
	}
	return lines
}

// versions lists at versions that are past, present and to come.
func versions(s *transcript, w world) {
	f := listForms()[1]
	before := versionOf(s, s.get(somePods, with("limit", "1"), f))
	w.add(s.t)
	w.finish(s.t, 1)
	w.remove(s.t, 4)
	after := versionOf(s, s.get(somePods, with("limit", "1"), f))
	for _, v := range []string{before, after} {
		s.get(somePods, with(version, v, match, "Exact"), f)
		s.get(somePods, with(version, v, match, "NotOlderThan"), f)
		s.get(somePods, with(version, v), f)
		s.get(somePods, with(version, v, "limit", "30"), f)
		s.get(somePods, with(version, v, match, "Exact", "limit", "5"), f)
	}
	s.get(somePods, with(version, future), f)
	s.get(somePods, with(version, future, match, "NotOlderThan"), f)
}

func versionOf(s *transcript, obj runtime.Object) string {
	list, err := meta.ListAccessor(obj)
	must(s.t, err)
	return list.GetResourceVersion()
}

// refusals asks for what nobody answers.
func refusals(s *transcript, _ world) {
	for _, f := range listForms()[:2] {
		s.get(allPods, with(version, "abc"), f)
		s.get(allPods, with(match, "Exact"), f)
		s.get(allPods, with(match, "Exact", version, "0"), f)
		s.get(allPods, with(match, "Sometimes", version, "5"), f)
		s.get(allPods, with(initially, "true"), f)
		s.get(allPods, with("continue", "abc"), f)
		s.get(allPods, with("limit", "x"), f)
		s.get("/api/v1/namespaces/team-000/pods/nobody", with(), f)
		s.get("/api/v1/widgets", with(), f)
		s.get("/apis/example.com/v1/widgets", with(), f)
		s.watch(allPods, with(initially, "true"), f, never)
		s.watch(allPods, with(match, "NotOlderThan"), f, never)
		s.watch(allPods, with(version, "abc"), f, never)
	}
	s.get(allPods, with(), form{"pictures", "image/png", false})
	s.watch(allPods, with(), form{"pictures", "image/png", false}, never)
	stranger := rest.AnonymousClientConfig(s.config)
	stranger.BearerToken = "nobody's"
	client, err := rest.HTTPClientFor(stranger)
	must(s.t, err)
	known := s.client
	s.client = client
	s.get(allPods, with(), listForms()[0])
	s.get(allPods, with(), listForms()[1])
	s.client = known
}

// initials watches from what there is.
func initials(s *transcript, _ world) {
	for _, f := range watchForms() {
		s.watch(allPods, with(initially, "true", match, "NotOlderThan", "allowWatchBookmarks", "true"), f, complete)
		s.watch(somePods, with(initially, "true", match, "NotOlderThan", "allowWatchBookmarks", "true", version, "0"), f, complete)
		s.watch(somePods, with(initially, "true", match, "NotOlderThan", "timeoutSeconds", "1"), f, never)
		s.watch(somePods, with(version, "0", "allowWatchBookmarks", "true"), f, complete)
		s.watch(somePods, with("allowWatchBookmarks", "true"), f, complete)
		s.watch("/api/v1/namespaces/team-001/services", with(initially, "true", match, "NotOlderThan", "allowWatchBookmarks", "true"), f, complete)
		s.watch("/api/v1/namespaces/team-001/secrets", with(initially, "true", match, "NotOlderThan", "allowWatchBookmarks", "true"), f, complete)
		s.watch("/api/v1/namespaces", with("fieldSelector", "metadata.name=team-001", "timeoutSeconds", "1"), f, never)
	}
	f := watchForms()[1]
	s.watch(allPods, with(initially, "true", match, "NotOlderThan", "allowWatchBookmarks", "true", version, future), f, never)
}

// happenings watches pods come, finish and go.
func happenings(s *transcript, w world) {
	for i, f := range watchForms() {
		since := versionOf(s, s.get(allPods, with("limit", "1"), listForms()[0]))
		number := w.add(s.t)
		w.finish(s.t, number)
		w.remove(s.t, number)
		s.watch(allPods, with(version, since), f, after(4))
		w.remove(s.t, 7+uint32(i))
		s.watch(allPods, with(version, since, "allowWatchBookmarks", "true"), f, after(6))
	}
	since := versionOf(s, s.get(allPods, with("limit", "1"), listForms()[0]))
	for _, f := range watchForms() {
		s.watch(somePods, with(version, "1"), f, never)
	}
	s.watch(somePods, with(version, future, "timeoutSeconds", "1"), watchForms()[1], never)
	s.watch(somePods, with(version, since, "timeoutSeconds", "1"), watchForms()[1], never)
}

// ends lets watches come to their end, which a bookmark announces.
func ends(s *transcript, w world) {
	since := versionOf(s, s.get(allPods, with("limit", "1"), listForms()[0]))
	w.add(s.t)
	for _, f := range watchForms()[:2] {
		s.watch(allPods, with(version, since, "timeoutSeconds", "4", "allowWatchBookmarks", "true"), f, never)
		s.watch(allPods, with(version, since, "timeoutSeconds", "2"), f, never)
		since = versionOf(s, s.get(allPods, with("limit", "1"), listForms()[0]))
		var more sync.WaitGroup
		more.Go(func() {
			time.Sleep(time.Second)
			w.add(s.t)
		})
		s.watch(allPods, with(version, since, "timeoutSeconds", "5", "allowWatchBookmarks", "true"), f, never)
		more.Wait()
	}
}

// expiry continues a list that nobody remembers.
func expiry(s *transcript, w world) {
	f := listForms()[1]
	list := s.get(allPods, with("limit", "50"), f)
	w.age(s.t, list)
	accessor, err := meta.ListAccessor(list)
	must(s.t, err)
	query := with("limit", "50", "continue", accessor.GetContinue())
	status, ok := s.get(allPods, query, f).(*metav1.Status)
	if !ok {
		s.t.Error("the token is still good")
		return
	}
	query.Set("continue", status.Continue)
	s.get(allPods, query, f)
	s.get(allPods, with(version, accessor.GetResourceVersion(), match, "Exact"), f)
	s.lines = withoutTokens(s.lines)
}

// quotas writes the status of a quota.
func quotas(s *transcript, _ world) {
	api := kubernetes.NewForConfigOrDie(s.config).CoreV1().ResourceQuotas("team-000")
	quota, err := api.Get(s.t.Context(), "compute", metav1.GetOptions{})
	must(s.t, err)
	for i, used := range []string{"5", "5", "6"} {
		update := quota.DeepCopy()
		update.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"pods": resource.MustParse(used)}}
		now, err := api.UpdateStatus(s.t.Context(), update, metav1.UpdateOptions{})
		must(s.t, err)
		s.note("write %d is a new version %v and says %s", i, now.ResourceVersion != quota.ResourceVersion, now.Status.Used.Pods())
		quota = now
	}
	stale := quota.DeepCopy()
	stale.ResourceVersion = "1"
	stale.Status.Used = nil
	_, err = api.UpdateStatus(s.t.Context(), stale, metav1.UpdateOptions{})
	s.note("%s: %v", apierrors.ReasonForError(err), err)
	stale.Name = "nobody"
	_, err = api.UpdateStatus(s.t.Context(), stale, metav1.UpdateOptions{})
	s.note("%s: %v", apierrors.ReasonForError(err), err)
	s.watch("/api/v1/namespaces/team-000/resourcequotas", with(version, quota.ResourceVersion, "timeoutSeconds", "1"), watchForms()[0], never)
}

// discoveries asks what is served, as the hub does. A real server serves more.
func discoveries(s *transcript, _ world) {
	api := discovery.NewDiscoveryClientForConfigOrDie(s.config)
	info, err := api.ServerVersion()
	must(s.t, err)
	s.note("version %s.%s %s", info.Major, info.Minor, info.GitVersion)
	for _, old := range []bool{false, true} {
		api.UseLegacyDiscovery = old
		lists, err := discovery.ServerPreferredNamespacedResources(api)
		must(s.t, err)
		kinds := map[string]bool{}
		for _, list := range lists {
			for _, r := range list.APIResources {
				kinds[fmt.Sprintf("%s %s %s", list.GroupVersion, r.Name, r.Kind)] = slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
			}
		}
		for _, kind := range []string{
			"v1 pods Pod", "v1 services Service", "v1 secrets Secret", "v1 configmaps ConfigMap", "v1 resourcequotas ResourceQuota",
			"v1 replicationcontrollers ReplicationController", "v1 persistentvolumeclaims PersistentVolumeClaim",
			"apps/v1 deployments Deployment", "apps/v1 statefulsets StatefulSet", "apps/v1 replicasets ReplicaSet", "apps/v1 daemonsets DaemonSet",
			"batch/v1 jobs Job", "batch/v1 cronjobs CronJob", "resource.k8s.io/v1 resourceclaims ResourceClaim",
		} {
			s.note("%s is listed and watched: %v", kind, kinds[kind])
		}
	}
	for _, path := range []string{"/api", "/apis", "/api/v1", "/apis/apps/v1"} {
		for _, accept := range []string{asJSON, asJSON + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," + asJSON} {
			answer := s.ask(s.t.Context(), path, with(), form{accept, accept, false})
			must(s.t, answer.Body.Close())
		}
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "update", Resource: "resourcequotas", Subresource: "status"},
	}}
	answer, err := kubernetes.NewForConfigOrDie(s.config).AuthorizationV1().SelfSubjectAccessReviews().Create(s.t.Context(), review, metav1.CreateOptions{})
	must(s.t, err)
	s.note("allowed %v", answer.Status.Allowed)
}

// source lists and watches, and says which it was asked for.
type source struct {
	cache.ListerWatcherWithContext

	old   bool // lists, as clients did before watches could
	asked func(what string)
}

func (l *source) IsWatchListSemanticsUnSupported() bool { return l.old }

func (l *source) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

func (l *source) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

func (l *source) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	l.asked("list")
	return l.ListerWatcherWithContext.ListWithContext(ctx, o)
}

func (l *source) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	what := "watch"
	if o.SendInitialEvents != nil {
		what = "watch-list"
	}
	l.asked(what)
	return l.ListerWatcherWithContext.WatchWithContext(ctx, o)
}

// reflectors lets client-go follow pods, in each way that it can.
func reflectors(s *transcript, w world) {
	for i, old := range []bool{false, true, false, true} {
		config := rest.CopyConfig(s.config)
		config.DisableCompression = false
		config.ContentType = asProtobuf
		var example runtime.Object = &corev1.Pod{}
		lw := typed(config)
		if i >= 2 {
			example, lw = &metav1.PartialObjectMetadata{}, bare(config)
		}
		s.reflect(w, &source{ListerWatcherWithContext: lw, old: old}, example)
	}
}

func typed(config *rest.Config) cache.ListerWatcherWithContext {
	api := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("")
	return cache.ToListerWatcherWithContext(&cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return api.List(ctx, o) },
		WatchFuncWithContext: api.Watch,
	})
}

func bare(config *rest.Config) cache.ListerWatcherWithContext {
	api := metadata.NewForConfigOrDie(metadata.ConfigFor(config)).Resource(corev1.SchemeGroupVersion.WithResource("pods"))
	return cache.ToListerWatcherWithContext(&cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return api.List(ctx, o) },
		WatchFuncWithContext: api.Watch,
	})
}

// reflect follows pods while some come and go, and notes what is there at last.
func (s *transcript) reflect(w world, from *source, example runtime.Object) {
	s.t.Helper()
	var mu sync.Mutex
	from.asked = func(what string) {
		mu.Lock()
		defer mu.Unlock()
		s.note("%s of %T", what, example)
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	reflector := cache.NewReflectorWithOptions(from, example, store, cache.ReflectorOptions{Name: "conformance"})
	ctx, cancel := context.WithCancel(s.t.Context())
	var done sync.WaitGroup
	done.Go(func() { reflector.RunWithContext(ctx) })
	defer done.Wait()
	defer cancel()
	until := func(what string, n int) {
		deadline := time.Now().Add(20 * time.Second)
		for len(store.List()) != n {
			if time.Now().After(deadline) {
				s.t.Errorf("%s: %d pods instead of %d", what, len(store.List()), n)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	before := s.count()
	until("at first", before)
	number := w.add(s.t)
	until("one more", before+1)
	w.remove(s.t, number)
	until("one less", before)
	mu.Lock()
	defer mu.Unlock()
	for _, key := range slices.Sorted(slices.Values(store.ListKeys())) {
		s.note("  %s", key)
	}
}

// count is how many pods there are.
func (s *transcript) count() int {
	pods, err := kubernetes.NewForConfigOrDie(s.config).CoreV1().Pods("").List(s.t.Context(), metav1.ListOptions{})
	must(s.t, err)
	return len(pods.Items)
}
