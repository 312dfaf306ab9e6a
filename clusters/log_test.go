package clusters_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2/textlogger"

	"github.com/fleetquota/fleetquota/clusters"
)

// lines is a log that several goroutines write.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func TestNothingSecretIsLoggedOrObserved(t *testing.T) {
	inWorld(t, func(w *world) {
		out := &lines{}
		w.logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(10), textlogger.Output(out)))
		c := w.cluster("east", "uid-1")
		c.token = "s3cr3t-of-the-member"
		w.fail["east"] = fmt.Errorf("a server that says %q", c.token)
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		w.edit("east", config("users: ["+c.token))
		c.set(func(c *cluster) { c.status = http.StatusInternalServerError })
		w.after(time.Minute)
		c.set(func(c *cluster) { c.status, c.token = 0, "another" })
		w.after(time.Minute)
		w.want("east", clusters.Unreachable, clusters.ReasonUnauthorized, clusters.ReasonParseError)
		if !strings.Contains(out.String(), "Engagement ended") {
			t.Error("the log does not tell of the failed engagement")
		}
		if shown := out.String() + fmt.Sprintf("%+v", w.states); strings.Contains(shown, "s3cr3t-of") {
			t.Errorf("the token shows:\n%s", shown)
		}
	})
}
