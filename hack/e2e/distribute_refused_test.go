package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A member that may be read, and refuses what it is sent, is tried ever more
// rarely, though reading it goes well each time: each try writes the record.
func TestDistributeRefusedIsTriedRarely(t *testing.T) {
	t.Parallel()
	moat := shared.addCluster(t, "moat")
	reader := registration("moat")
	reader.Roles = []string{"fleetquota-observe", "fleetquota-observe-base", "fleetquota-observe-secrets"}
	x := shared.tenant(t, "moat")
	x.must(x.Register(t.Context(), moat, reader))
	x.quota("compute", list("pods", "4"), only("moat"), divided("Weighted"))
	tries := func() (tries int64) {
		x.eventually(soon, func(ctx context.Context) error {
			grant, err := x.Hub.Quota.Grants(x.namespace).Get(ctx, "compute", metav1.GetOptions{})
			if err == nil && grant.Spec.Revision == 0 {
				err = errors.New("nothing was tried yet")
			}
			if err == nil {
				tries = grant.Spec.Revision
			}
			return err
		})
		return tries
	}
	tries()
	time.Sleep(10 * time.Second)
	const most = 8 // after 0.5, 1, 2, 4 and 8 s, and some that what was seen has hurried
	if n := tries(); n > most {
		t.Errorf("%d tries in 10 s, want at most %d", n, most)
	}
	x.becomes("compute", notEnforced("MemberUnbounded"), reason("moat", "MayNotWrite"))
}
