package clusters_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/fleetquota/fleetquota/clusters"
)

const hubNamespace = "fleetquota"

// world is a hub with its Secrets, the clusters around it, and a host that
// writes down what it is told.
type world struct {
	t       *testing.T
	slow    string // takes a minute to end its engagement
	hub     *fake.Clientset
	net     network
	options clusters.Options
	secrets clusters.SecretOptions
	begin   time.Time
	logger  klog.Logger

	mu      sync.Mutex // guards the rest
	log     []string   // "5s engage east"
	states  map[string][]clusters.State
	running map[string]*clusters.Connection
	engaged map[string]int
	fail    map[string]error // what Engage returns at once
	anew    map[string]bool  // whether Engage returns nil after a minute, to begin anew
}

// inWorld runs a claim about a world whose time is that of a bubble.
func inWorld(t *testing.T, claim func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, hub: fake.NewClientset(), net: network{}, begin: time.Now(), logger: klog.Background(),
			states: map[string][]clusters.State{}, running: map[string]*clusters.Connection{},
			engaged: map[string]int{}, fail: map[string]error{}, anew: map[string]bool{},
		}
		claim(w)
	})
}

// serve runs Serve until the test ends, and checks that nothing is left then.
func (w *world) serve() {
	ctx, cancel := context.WithCancel(klog.NewContext(w.t.Context(), w.logger))
	done := make(chan error)
	w.options.Listed = func(context.Context) { w.note("listed", "") }
	source := clusters.NewSecrets(w.hub, hubNamespace, w.secrets)
	go func() { done <- clusters.Serve(ctx, source, w, w.options.WithDial(w.net.dial)) }()
	w.t.Cleanup(func() {
		asked := time.Now()
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Serve: %v", err)
		}
		if took := time.Since(asked); took > time.Second {
			w.t.Errorf("Serve took %v to return", took)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.running) > 0 {
			w.t.Errorf("still engaged: %v", w.running)
		}
	})
	w.after(time.Second)
}

func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) cluster(host, uid string) *cluster {
	c := newCluster(w.t, host, uid)
	w.net[host] = c
	return c
}

type edit func(*corev1.Secret)

func annotated(key, value string) edit {
	return func(s *corev1.Secret) { s.Annotations[key] = value }
}

func labelled(key, value string) edit { return func(s *corev1.Secret) { s.Labels[key] = value } }

func config(text string) edit {
	return func(s *corev1.Secret) { s.Data = map[string][]byte{"kubeconfig": []byte(text)} }
}

// secret creates the Secret of a member, one second younger than those before.
func (w *world) secret(name string, edits ...edit) {
	w.after(time.Second)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: hubNamespace, Name: name, CreationTimestamp: metav1.Now(),
		Labels: map[string]string{clusters.LabelMember: "true"}, Annotations: map[string]string{},
	}}
	for _, e := range edits {
		e(s)
	}
	_, err := w.hub.CoreV1().Secrets(hubNamespace).Create(w.t.Context(), s, metav1.CreateOptions{})
	must(w.t, err)
	synctest.Wait()
}

func (w *world) edit(name string, edits ...edit) {
	secrets := w.hub.CoreV1().Secrets(hubNamespace)
	s, err := secrets.Get(w.t.Context(), name, metav1.GetOptions{})
	must(w.t, err)
	s = s.DeepCopy()
	for _, e := range edits {
		e(s)
	}
	_, err = secrets.Update(w.t.Context(), s, metav1.UpdateOptions{})
	must(w.t, err)
	synctest.Wait()
}

func (w *world) delete(name string) {
	must(w.t, w.hub.CoreV1().Secrets(hubNamespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
	synctest.Wait()
}

func (w *world) note(what, who string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf("%s %s", what, who))
}

// Engage implements clusters.Host.
func (w *world) Engage(ctx context.Context, c *clusters.Connection) error {
	w.note("engage", c.Member.Name)
	w.mu.Lock()
	err, anew := w.fail[c.Member.Name], w.anew[c.Member.Name]
	w.engaged[c.Member.Name]++
	if w.running[c.Member.Name] != nil {
		w.t.Errorf("%s is engaged twice at once", c.Member.Name)
	}
	w.running[c.Member.Name] = c
	w.mu.Unlock()
	switch {
	case anew:
		time.Sleep(time.Minute)
	case err == nil:
		<-ctx.Done()
		err = errors.New("ended")
		if w.slow == c.Member.Name {
			time.Sleep(time.Minute)
		}
	}
	w.note("end", c.Member.Name)
	w.mu.Lock()
	delete(w.running, c.Member.Name)
	w.mu.Unlock()
	return err
}

// Observe implements clusters.Host.
func (w *world) Observe(_ context.Context, s clusters.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states[s.Member.Name] = append(w.states[s.Member.Name], s)
	w.log = append(w.log, "observe "+s.Member.Name)
}

// Gone implements clusters.Host.
func (w *world) Gone(_ context.Context, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[name] != nil {
		w.t.Errorf("%s is gone and still engaged", name)
	}
	w.log = append(w.log, "gone "+name)
}

// Refuse implements clusters.Host.
func (w *world) Refuse(_ context.Context, secret types.NamespacedName, reason, _ string) {
	w.note("refuse "+reason, secret.Name)
}

// state is the latest that the host was told.
func (w *world) state(name string) clusters.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.states[name]
	if len(all) == 0 {
		w.t.Fatalf("nothing was observed of %s", name)
	}
	return all[len(all)-1]
}

// observed counts what the host was told of the member east.
func (w *world) observed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.states["east"])
}

func (w *world) connection(name string) *clusters.Connection {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running[name]
}

func (w *world) did(what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.log, what)
}

// wantEngaged checks that a member is engaged, and how often it was so far.
func (w *world) wantEngaged(name string, times int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[name] == nil || w.engaged[name] != times {
		w.t.Errorf("%s: engaged %v, %d times so far, want %d and now", name, w.running[name] != nil, w.engaged[name], times)
	}
}

func (w *world) want(name string, reach clusters.Reach, reason, credentials string) {
	w.t.Helper()
	s := w.state(name)
	if s.Reach != reach || s.Reason != reason || s.CredentialsReason != credentials {
		w.t.Errorf("%s is %q %q, credentials %q, want %q %q, %q",
			name, s.Reach, s.Reason, s.CredentialsReason, reach, reason, credentials)
	}
}

// wantIdle checks that a member is not engaged.
func (w *world) wantIdle(name string) {
	w.t.Helper()
	if w.connection(name) != nil {
		w.t.Errorf("%s is engaged", name)
	}
}
