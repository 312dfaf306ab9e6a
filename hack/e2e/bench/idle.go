package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// idleWrites counts what the hub writes while nothing happens, as the servers'
// audit logs tell. Its own Lease is left out.
func (f *fleet) idleWrites(ctx context.Context, o options) ([]figure.Row, error) {
	const quiet = 5 * time.Second // for what the last deletion has caused
	lasts := pick(o, 10*time.Second, time.Minute)
	progress("count the hub's writes in %s without changes", lasts)
	if err := pass(ctx, quiet); err != nil {
		return nil, err
	}
	servers := append([]*scene.Cluster{f.scene.Hub}, f.members()...)
	from := make([]int64, len(servers))
	for i, server := range servers {
		info, err := os.Stat(server.AuditLog())
		if err != nil {
			return nil, err
		}
		from[i] = info.Size()
	}
	if err := pass(ctx, lasts); err != nil {
		return nil, err
	}
	writes := 0
	for i, server := range servers {
		n, err := writesOfOurs(server.AuditLog(), from[i])
		if err != nil {
			return nil, fmt.Errorf("audit log of %s: %w", server.Name(), err)
		}
		writes += n
	}
	name := fmt.Sprintf("idle writes to %d servers in %s, Lease aside", len(servers), lasts)
	return []figure.Row{{Name: name, Ours: float64(writes) / lasts.Minutes(), In: figure.PerMinute, Target: figure.AtMost(0)}}, nil
}

// pass waits.
func pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// auditEvent is what matters here of a line of an audit log.
type auditEvent struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"objectRef"`
}

// writesOfOurs counts the writes of the hub's accounts in an audit log from an
// offset on, Leases aside.
func writesOfOurs(path string, from int64) (count int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return 0, err
	}
	const longest = 1 << 20
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		var event auditEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return 0, err
		}
		if isOurs(event.User.Username) && event.ObjectRef.Resource != "leases" {
			progress("an idle write: %+v", event)
			count++
		}
	}
	return count, lines.Err()
}

// isOurs says whether a user is the hub, at its own cluster or in a member.
func isOurs(user string) bool {
	const accounts = "system:serviceaccount:" + scene.Namespace + ":"
	return user == accounts+"fleetquota-controller" || user == accounts+"fleetquota-hub"
}
