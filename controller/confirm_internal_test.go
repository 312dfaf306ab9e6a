package controller

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestListsAreSharedAndFarApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReleases(time.Second)
		kind := corev1.Resource("pods")
		l := r.listOf("team", kind)
		if r.listOf("team", kind) != l || r.listOf("other", kind) == l {
			t.Error("the list is not that of the namespace")
		}
		start, made := time.Now(), 0
		renew := func(same bool, fails error) {
			t.Helper()
			err := l.renew(func() (string, bool, error) {
				made++
				time.Sleep(100 * time.Millisecond)
				return "7", same, fails
			})
			if err != nil && !errors.Is(err, fails) {
				t.Error(err)
			}
		}
		renew(true, nil)
		if made != 1 || !l.began.Equal(start) || l.version != "7" {
			t.Errorf("after one list: %d were made, %+v", made, l)
		}
		renew(true, nil) // another quota's turn
		time.Sleep(1900 * time.Millisecond)
		renew(true, nil)
		if made != 1 {
			t.Errorf("%d lists of 0.1 s in 2 s", made)
		}
		time.Sleep(100 * time.Millisecond)
		renew(false, nil)
		time.Sleep(2 * time.Second)
		renew(false, errors.New("no answer"))
		if made != 3 || !l.began.Equal(start) {
			t.Errorf("lists that do not agree or fail say something: %d were made, %+v", made, l)
		}
		r.keep["team"] = map[string]*keeper{"q": {}}
		r.forget(keyOf(quota(1, 1, 1, 1)))
		if r.listOf("team", kind) == l {
			t.Error("the list outlives the quotas of the namespace")
		}
	})
}
