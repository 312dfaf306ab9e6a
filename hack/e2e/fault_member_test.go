package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// How long a member may be silent until its numbers are marked.
const (
	staleWithin       = 25 * time.Second
	unreachableWithin = 75 * time.Second
)

// silence is a story of a member that stops to answer: its numbers are kept and
// marked in time, and the other member goes on.
type silence struct {
	*tenant

	name  string // of the member
	quota string
	began time.Time
	seen  *watched
}

// silence begins a story: the member has 3 pods, and east 2.
func (x *tenant) silence(name string) *silence {
	x.t.Helper()
	x.create("east", pod("a"), pod("b"))
	x.create(name, pod("a", requests("cpu", "1")), pod("b"), pod("c"))
	x.quota("all", list("pods", "10", "requests.cpu", "10"), in("east", name))
	x.becomes("all", complete, uses("pods", "5", "requests.cpu", "1"))
	return &silence{tenant: x, name: name, quota: "all", began: time.Now(), seen: x.watch("all")}
}

// becomesStale waits for the first mark, and for the other member to move.
func (s *silence) becomesStale() {
	s.t.Helper()
	q := s.becomesWithin(staleWithin-time.Since(s.began), s.quota, phase(s.name, v1alpha1.Stale), memberUses(s.name, "pods", "3", "requests.cpu", "1"),
		uses("pods", "5"), condition("UsageComplete", "False", "MembersNotLive"), columns("1/2", "50%"))
	took := time.Since(s.began)
	s.t.Logf("Stale after %.1f s, because of %s", took.Seconds(), rowOf(q, s.name).Reason)
	if took < 8*time.Second {
		s.t.Errorf("Stale after %s already: one lost probe is no silence", took)
	}
	observed := rowOf(q, s.name).LastObservedTime.Time
	if observed.After(s.began.Add(2*time.Second)) || observed.Before(s.began.Add(-15*time.Second)) {
		s.t.Errorf("last observed %s after the silence began", observed.Sub(s.began))
	}
	if rowOf(q, s.name).Reason == "" {
		s.t.Error("no reason is given")
	}
	s.member(s.name, func(m *v1alpha1.FleetMember) error {
		if m.Status.Phase != v1alpha1.Stale || m.Status.LastContactTime == nil {
			return fmt.Errorf("phase %s, last contact %s", m.Status.Phase, m.Status.LastContactTime)
		}
		return hasFalse(m.Status.Conditions, "Ready")
	})
	s.delete("east", pods, "b")
	s.becomesWithin(5*time.Second, s.quota, uses("pods", "4"), memberUses(s.name, "pods", "3"), phase("east", v1alpha1.Live))
}

// becomesUnreachable waits for the second mark; the time of the last
// observation stands still.
func (s *silence) becomesUnreachable() {
	s.t.Helper()
	const settled = 2 * time.Second
	time.Sleep(settled)
	from := time.Now()
	before, err := s.get(s.t.Context(), s.quota)
	s.must(err)
	q := s.becomesWithin(unreachableWithin-time.Since(s.began), s.quota, phase(s.name, v1alpha1.Unreachable), memberUses(s.name, "pods", "3", "requests.cpu", "1"))
	s.t.Logf("Unreachable after %.1f s", time.Since(s.began).Seconds())
	was, is := rowOf(before, s.name).LastObservedTime, rowOf(q, s.name).LastObservedTime
	if !was.Equal(is) {
		s.t.Errorf("the time of the last observation moved from %s to %s", was, is)
	}
	until := time.Now().Add(-settled)
	writes, err := s.Hub.Writes(from, func(w scene.Write) bool {
		return w.User == scene.HubUser && w.At.Before(until) &&
			(w.Namespace == s.namespace || w.Name == s.name && w.Resource == "fleetmembers/status")
	})
	s.must(err)
	if len(writes) > 0 {
		s.t.Errorf("%d writes about a silence that went on: %v", len(writes), writes)
	}
}

// ends waits until the member is live again, and looks back at all that was
// shown meanwhile.
func (s *silence) ends(pods string) {
	s.t.Helper()
	began := time.Now()
	s.becomesWithin(time.Minute, s.quota, complete, memberUses(s.name, "pods", pods), columns("2/2", pods0(pods)))
	s.t.Logf("Live again after %.1f s", time.Since(began).Seconds())
	s.agrees(s.quota, "east", s.name)
	s.member(s.name, memberCondition("Ready", "True", "Live"), func(m *v1alpha1.FleetMember) error {
		if m.Status.LastContactTime != nil || m.Status.Phase != v1alpha1.Live {
			return fmt.Errorf("phase %s, last contact %s", m.Status.Phase, m.Status.LastContactTime)
		}
		return nil
	})
	s.seen.stop()
	s.seen.always(s.t, rows("east", s.name), usesAtLeast("pods", "2", "requests.cpu", "1"))
	events, err := s.eventsOn(s.t.Context(), "FleetMember", "default", s.name)
	s.must(err)
	s.t.Logf("events about the member: %v", events)
	if events["Normal Live"] != 2 {
		s.t.Errorf("events about the member: %v, want it to have become live twice", events)
	}
	var marks int
	s.seen.mu.Lock()
	for i := 1; i < len(s.seen.quotas); i++ {
		if rowOf(s.seen.quotas[i-1], s.name).Phase != rowOf(s.seen.quotas[i], s.name).Phase {
			marks++
		}
	}
	s.seen.mu.Unlock()
	const most = 4 // Live, Stale, Unreachable, Stale while it is listed anew, Live
	if marks > most {
		s.t.Errorf("the phase changed %d times", marks)
	}
}

// pods0 is how the pods of a silent member and one pod more show in percent of
// 10.
func pods0(pods string) string {
	quantity := list("pods", pods)["pods"]
	return fmt.Sprintf("%d%%", 10*(quantity.Value()+1))
}

// A member whose clock stops is marked in time and keeps its numbers; the
// others go on; when it is thawed it is live again.
func TestFaultFrozenMember(t *testing.T) {
	t.Parallel()
	ice := shared.addMember(t, "ice")
	x := shared.tenant(t, "east", "ice")
	s := x.silence("ice")
	x.must(ice.Freeze(t.Context()))
	s.began = time.Now()
	s.becomesStale()
	s.becomesUnreachable()
	x.must(ice.Thaw(t.Context()))
	x.eventually(soon, func(ctx context.Context) error { return ice.Create(ctx, x.namespace, pod("d")) })
	s.ends("4")
}

// A member that is killed is the same, and what was there before is counted
// after its restart.
func TestFaultKilledMember(t *testing.T) {
	t.Parallel()
	coal := shared.addMember(t, "coal")
	x := shared.tenant(t, "east", "coal")
	s := x.silence("coal")
	x.must(coal.Kill(t.Context()))
	s.began = time.Now()
	s.becomesStale()
	if !testing.Short() {
		s.becomesUnreachable()
	}
	x.must(coal.Restart(t.Context()))
	x.delete("coal", pods, "c")
	s.ends("2")
}

// A member that only the hub cannot reach goes on, and what happened there
// meanwhile is counted when the line is mended.
func TestFaultCutOffMember(t *testing.T) {
	t.Parallel()
	isle := shared.addCluster(t, "isle")
	line := newLine(t, isle.Config.Host)
	x := shared.tenant(t, "east", "isle")
	kubeconfig, err := x.Credentials(t.Context(), isle, registration("isle"))
	x.must(err)
	kubeconfig = changed(kubeconfig, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.Server = "https://" + line.address })
	x.must(x.WriteSecret(t.Context(), registration("isle"), kubeconfig))
	s := x.silence("isle")
	line.cut()
	s.began = time.Now()
	x.create("isle", pod("d"), pod("e", requests("cpu", "1")))
	x.delete("isle", pods, "b")
	s.becomesStale()
	if !testing.Short() {
		s.becomesUnreachable()
	}
	line.mend()
	s.ends("4")
}

// line is a TCP connection to a member that can be cut: then nothing gets
// through, and nobody is told.
type line struct {
	address string
	member  string

	mu    sync.Mutex // guards all below
	whole chan struct{}
}

func newLine(t *testing.T, server string) *line {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{address: listener.Addr().String(), member: u.Host, whole: make(chan struct{})}
	close(l.whole)
	t.Cleanup(func() { _ = listener.Close(); l.mend() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(t.Context(), near)
		}
	}()
	return l
}

func (l *line) open() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole
}

// carry copies both ways until one side ends.
func (l *line) carry(ctx context.Context, near net.Conn) {
	defer near.Close()
	<-l.open()
	far, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.member)
	if err != nil {
		return
	}
	defer far.Close()
	done := make(chan struct{}, 2)
	pass := func(to, from net.Conn) {
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			<-l.open() // what was cut off comes late
			if n > 0 {
				if _, err := to.Write(buffer[:n]); err != nil {
					break
				}
			}
			if errors.Is(err, io.EOF) || err != nil {
				break
			}
		}
		done <- struct{}{}
	}
	go pass(near, far)
	go pass(far, near)
	<-done
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = make(chan struct{})
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
}
