package scene

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Write is one write that an API server answered, as its audit log has it.
type Write struct {
	User      string
	Verb      string
	Resource  string // as in pods, or resourcequotas/status
	Namespace string
	Name      string
	Code      int
	At        time.Time
}

// String is the write in one line.
func (w Write) String() string {
	return fmt.Sprintf("%s %s %s/%s by %s: %d at %s", w.Verb, w.Resource, w.Namespace, w.Name, w.User, w.Code, w.At.Format("15:04:05.000"))
}

// auditEvent is what we read of an audit.k8s.io/v1 Event.
type auditEvent struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
}

// HubUser is who the hub's process is at the hub, and MemberUser who it is in
// a member.
const (
	HubUser    = "system:serviceaccount:" + Namespace + ":fleetquota-controller"
	MemberUser = "system:serviceaccount:" + Namespace + ":fleetquota-hub"
)

// Writes are the writes since a time that the audit log of a cluster has, in
// its order, and that keep says to keep.
func (c *Cluster) Writes(since time.Time, keep func(Write) bool) ([]Write, error) {
	file, err := os.Open(c.AuditLog())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var writes []Write
	const longest = 4 << 20
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		var event auditEvent
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue // the last line, half written
		}
		if w := event.write(); !w.At.Before(since) && keep(w) {
			writes = append(writes, w)
		}
	}
	return writes, lines.Err()
}

func (e *auditEvent) write() Write {
	ref := e.ObjectRef
	resource := ref.Resource
	if ref.Subresource != "" {
		resource += "/" + ref.Subresource
	}
	return Write{
		User: e.User.Username, Verb: e.Verb, Resource: resource, Namespace: ref.Namespace, Name: ref.Name,
		Code: e.ResponseStatus.Code, At: e.RequestReceivedTimestamp,
	}
}
