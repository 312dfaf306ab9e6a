package fleet

import (
	"net"
	"path/filepath"
	"reflect"
	"testing"
)

func TestStateSurvivesTheFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "eu-1")
	want := state{
		Name: "eu-1", Provider: Local, Version: "v1.37.2", Ports: ports{1, 2, 3, 4},
		NativeQuota: true, ExtraArgs: []string{"--v=4"}, NativeArgs: []string{"--v=5"}, Phase: starting,
	}
	if err := want.save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := loadState(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestChosenPortsAreFreeAndTheirOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := choosePorts(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", loopback(first.EtcdPeer))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	// The same folder would get the same ports, but one is listened to and one
	// belongs to a cluster that is down.
	second, err := choosePorts(dir, []ports{{API: first.API}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{first.API: true, first.EtcdPeer: true}
	for _, port := range []int{second.API, second.Etcd, second.EtcdPeer, second.Manager} {
		if seen[port] || port < firstPort || port >= firstPort+portRange {
			t.Errorf("port %d is taken or out of range", port)
		}
		seen[port] = true
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{
		"eu-1": true, "a": true, "": false, "-a": false, "a-": false, "A": false, "a/b": false, "..": false,
		"a2345678901234567890123456789012345678901": false,
	} {
		if err := validName(name); (err == nil) != valid {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

func TestWhatACrashedStartLeftIsEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, p := range map[string]phase{"half": starting, "whole": settled} {
		s := state{Name: name, Provider: Local, Phase: p}
		if err := s.save(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		c, err := process{name: etcd, dir: filepath.Join(dir, name)}.start(t.Context(), detached, "/bin/sleep", []string{"60"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { <-c.ended })
	}
	f, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.endLeftovers(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Status{"half": Stopped, "whole": Broken} {
		c, err := f.Cluster(name)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := c.Info(t.Context()); err != nil || info.Status != want {
			t.Errorf("%s: got %+v, %v, want it %s", name, info, err, want)
		}
	}
	if err := f.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestOtherFleetsSeeWhatWeDid(t *testing.T) {
	dir := t.TempDir()
	f, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s := state{Name: "a", Provider: Local, Version: "v1.37.2", Phase: settled}
	if err := s.save(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := f.refresh(); err != nil {
		t.Fatal(err)
	}
	c, err := f.Cluster("a")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := c.Info(t.Context()); err != nil || info.Status != Stopped {
		t.Errorf("got %+v, %v, want it stopped", info, err)
	}

	other, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.refresh(); err != nil || len(f.Clusters()) != 0 {
		t.Errorf("%d clusters are left, %v, want none", len(f.Clusters()), err)
	}
}
