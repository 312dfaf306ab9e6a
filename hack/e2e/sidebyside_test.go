package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/hack/e2e/count"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// The members that play the same script: Kubernetes' own controller keeps the
// quotas of one, and the hub those of the other.
const (
	native = "east"
	ours   = "west"
)

// The same scripts are played in a member whose quotas Kubernetes' own
// controller keeps and in one whose quotas the hub keeps. Each step has the same
// outcome in both, and in the end every quota has the same status in both,
// which is what an independent count says.
func TestSideBySideWithTheNativeController(t *testing.T) {
	t.Parallel()
	seeds, length := []uint64{1, 2, 3}, 120
	if testing.Short() {
		seeds, length = seeds[:1], 50
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			x := shared.tenant(t, native, ours)
			x.stage()
			x.playAll(seed, length)
			x.ourStatusIsRight()
			x.nativeStatusIsNotYetRight()
			x.statusesAreTheSame()
		})
	}
}

// stage makes what scripts need, and the quotas that are there from the start.
func (x *tenant) stage() {
	x.t.Helper()
	for _, name := range []string{native, ours} {
		member := x.Member(name)
		for _, object := range scriptStage() {
			if err := member.Create(x.t.Context(), "", object); !apierrors.IsAlreadyExists(err) { // another seed's
				x.must(err)
			}
		}
		var steps []step
		for _, quota := range scriptQuotas() {
			steps = append(steps, step{what: "create quota " + quota.Name, do: creation(quota)})
		}
		for _, quota := range scriptQuotas() {
			steps = append(steps, answered(quota.Name))
		}
		_, err := play(x.t.Context(), member, x.namespace, steps)
		x.must(err)
	}
}

// playAll plays the scripts of some users at once, in both members, and then
// that of one who is alone and asks for too much now and then. Beside others
// that could be let through: after a conflict admission looks at all requests
// again, with the quotas alone whose status it could not write
// (kubernetes#141904).
func (x *tenant) playAll(seed uint64, length int) {
	x.t.Helper()
	const users = 3
	var group []([]step)
	for user := range uint64(users) {
		group = append(group, script(seed, user, length, 0))
	}
	x.playAtOnce(group...)
	const tooMuch = 30
	x.playAtOnce(script(seed, users, length/2, tooMuch))
}

func (x *tenant) playAtOnce(scripts ...[]step) {
	x.t.Helper()
	began := time.Now()
	var again atomic.Int64
	group, ctx := errgroup.WithContext(x.t.Context())
	for _, steps := range scripts {
		for _, name := range []string{native, ours} {
			group.Go(func() error {
				n, err := play(ctx, x.Member(name), x.namespace, steps)
				again.Add(int64(n))
				return err
			})
		}
	}
	err := group.Wait()
	x.t.Logf("%d users took %.1f s for %d steps; %d requests had to be sent again", len(scripts), time.Since(began).Seconds(), len(scripts[0]), again.Load())
	x.must(err)
}

// play does what a script says, fails where the API answers otherwise than the
// script says, and counts the requests that had to be sent again.
func play(ctx context.Context, member *scene.Cluster, namespace string, steps []step) (again int, err error) {
	for i, s := range steps {
		tries := -1
		var answer error
		err := scene.Eventually(ctx, soon, func(ctx context.Context) error {
			tries++
			answer = s.do(ctx, member, namespace)
			if passing(answer) {
				return answer
			}
			return nil
		})
		again += tries
		switch {
		case err != nil:
			return again, fmt.Errorf("step %d at %s: %s: %w", i, member.Name(), s.what, err)
		case s.refused == "" && answer != nil:
			return again, fmt.Errorf("step %d at %s: %s: %w, want it let through", i, member.Name(), s.what, answer)
		case s.refused != "" && answer == nil:
			return again, fmt.Errorf("step %d at %s: %s: it was let through, want it refused because of %q", i, member.Name(), s.what, s.refused)
		case s.refused != "" && !strings.Contains(answer.Error(), s.refused):
			return again, fmt.Errorf("step %d at %s: %s: %w, want it refused because of %q", i, member.Name(), s.what, answer, s.refused)
		}
	}
	return again, nil
}

// passing says whether an answer is of a moment: the status of a quota was
// written meanwhile, or is not known yet, or admission had no time.
func passing(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		err != nil && (strings.Contains(err.Error(), "status unknown for quota") || strings.Contains(err.Error(), "resource quota evaluation timed out"))
}

// quotasOf are the quotas of the test's namespace in a member, by name.
func (x *tenant) quotasOf(ctx context.Context, member string) (map[string]*corev1.ResourceQuota, error) {
	list, err := x.Member(member).Kubernetes.CoreV1().ResourceQuotas(x.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	byName := map[string]*corev1.ResourceQuota{}
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	return byName, nil
}

// wrong says which quotas of a member have another status than an independent
// count gives.
func (x *tenant) wrong(ctx context.Context, member string) error {
	quotas, err := x.quotasOf(ctx, member)
	if err != nil {
		return err
	}
	var errs []error
	for name, q := range quotas {
		counted, err := x.counted(ctx, member, q)
		if err != nil {
			return err
		}
		errs = append(errs, same(name+" at "+member+", hard", q.Status.Hard, q.Spec.Hard), same(name+" at "+member+", used", q.Status.Used, counted))
	}
	return errors.Join(errs...)
}

// counted is an independent count of what a quota limits.
func (x *tenant) counted(ctx context.Context, member string, q *corev1.ResourceQuota) (corev1.ResourceList, error) {
	m := x.Member(member)
	if q.Name != scriptDevices {
		return count.Cluster{Kubernetes: m.Kubernetes, Dynamic: m.Dynamic}.Used(ctx, x.namespace, q.Spec)
	}
	list, err := m.Kubernetes.ResourceV1().ResourceClaims(x.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var devices int64
	for i := range list.Items {
		for _, request := range list.Items[i].Spec.Devices.Requests {
			if request.Exactly.DeviceClassName == "gold" {
				devices += request.Exactly.Count
			}
		}
	}
	return corev1.ResourceList{
		"count/resourceclaims.resource.k8s.io":     *resource.NewQuantity(int64(len(list.Items)), resource.DecimalSI),
		"gold.deviceclass.resource.k8s.io/devices": *resource.NewQuantity(devices, resource.DecimalSI),
	}, nil
}

// ourStatusIsRight waits until every quota that we keep is right, with no help.
// What admission has charged twice stays until lists confirm what is there, and
// on a busy machine these are far apart.
func (x *tenant) ourStatusIsRight() {
	x.t.Helper()
	const patience = 2 * time.Minute
	began := time.Now()
	x.eventually(patience, func(ctx context.Context) error { return x.wrong(ctx, ours) })
	x.t.Logf("ours are right %.1f s after the last step", time.Since(began).Seconds())
}

// nativeStatusIsNotYetRight tells which quotas the native controller has left
// wrong: it looks again after five minutes.
func (x *tenant) nativeStatusIsNotYetRight() {
	x.t.Helper()
	if err := x.wrong(x.t.Context(), native); err != nil {
		x.t.Logf("the native controller has left wrong by now:\n%v", err)
	}
}

// statusesAreTheSame makes the native controller count again, and compares. It
// counts from what it has seen so far, so that once may not be enough; ours is
// told the same each time.
func (x *tenant) statusesAreTheSame() {
	x.t.Helper()
	const rounds = 6
	var err error
	for round := range rounds {
		x.touch(native)
		x.touch(ours)
		err = scene.Eventually(x.t.Context(), soon/rounds, x.differ)
		if err == nil {
			x.t.Logf("the same after %d recounts", round+1)
			return
		}
	}
	x.t.Error(err)
}

// differ says which quotas have another status in one member than in the other,
// or than an independent count gives.
func (x *tenant) differ(ctx context.Context) error {
	theirs, err := x.quotasOf(ctx, native)
	if err != nil {
		return err
	}
	own, err := x.quotasOf(ctx, ours)
	if err != nil {
		return err
	}
	var errs []error
	for name, q := range theirs {
		if own[name] == nil {
			errs = append(errs, fmt.Errorf("there is no quota %s in %s", name, ours))
			continue
		}
		errs = append(errs, same(name+", hard, ours", own[name].Status.Hard, q.Status.Hard), same(name+", used, ours", own[name].Status.Used, q.Status.Used))
	}
	if len(own) != len(theirs) {
		errs = append(errs, fmt.Errorf("%d quotas in %s, %d in %s", len(own), ours, len(theirs), native))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return errors.Join(x.wrong(ctx, native), x.wrong(ctx, ours))
}

// touch changes a limit of each quota in a member a little: the native
// controller looks at a quota when its limits change.
func (x *tenant) touch(member string) {
	x.t.Helper()
	quotas, err := x.quotasOf(x.t.Context(), member)
	x.must(err)
	for name := range quotas {
		x.eventually(soon, func(ctx context.Context) error {
			return rehard(ctx, x.Member(member), x.namespace, name, func(q *corev1.ResourceQuota) corev1.ResourceList {
				hard := q.Spec.Hard.DeepCopy()
				first := slices.Min(slices.Collect(maps.Keys(hard)))
				limit := hard[first]
				limit.Add(resource.MustParse("1"))
				hard[first] = limit
				return hard
			})
		})
	}
}
