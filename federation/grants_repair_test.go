package federation_test

import (
	"testing"

	"github.com/fleetquota/fleetquota/federation"
)

func TestNextRaisesNothingUntilALostRecordIsMadeGood(t *testing.T) {
	s := withShares(t, 6, 4)
	s.members["us"].cut = true
	s.lose("eu", "us")
	s.asked.Limit = list("pods", "7")
	s.want("eu", 7)
	s.want("us", 0)
	s.next()
	s.claim("eu 6 of ? Recovering, us ? of ? Recovering", "eu patch 6") // with an annotation that is new
	s.arrive()
	s.next()
	s.claim("eu 6 of 6, us ? of ? Recovering", "") // us may hold anything
	s.members["us"].cut = false
	s.next()
	s.claim("eu 6 of 6, us 1 of ? Recovering", "us patch 1") // lowered to what fits
	s.members["us"].dead = true
	s.arrive()
	s.next()
	s.claim("eu 6 of 6, us 0 of 4", "us patch 0") // believed with what is in force
	if got := perKeyOf(s.record.Spec.Hard)[0]; got != 10 {
		t.Errorf("limit on record %d, want the sum of 10", got)
	}
}

func TestNextRecoversAMemberWhoseQuotaIsGone(t *testing.T) {
	s := withShares(t, 6, 4)
	s.members["us"].remove()
	s.members["us"].running[0] = 9
	s.lose("eu", "us")
	s.next()
	s.claim("eu 6 of ? Recovering, us 0 of ? Recovering", "eu patch 6, us create 0")
	s.arrive()
	s.next()
	s.claim("eu 6 of 6, us 4 of 9", "us patch 4") // what is used there is on record now
}

// What others do to a quota stops every raise, is put right, and then all goes on.
func TestNextRepairs(t *testing.T) {
	for name, harm := range map[string]struct {
		do   func(*member)
		then string // the row of us after the first pass
		sent string
	}{
		"a limit that was raised":  {func(m *member) { m.quota.hard[0] = 9 }, "us 4 of 4 Repairing", "us patch 4"},
		"a limit that was lowered": {func(m *member) { m.quota.hard[0] = 1 }, "us 1 of 4 Repairing", "us patch 1"},
		"a limit that was removed": {func(m *member) { m.quota.hard[0] = absent }, "us 0 of 4 Repairing", "us patch 0"},
		"a quota that was deleted": {func(m *member) { m.remove() }, "us 0 of 4 Repairing", "us create 0"},
		"a quota without its mark": {func(m *member) { m.quota.mark = "" }, "us 4 of 4 Repairing", "us patch 4"},
		"a mark of the future":     {func(m *member) { m.quota.mark = "r.77" }, "us 4 of 4 Repairing", "us patch 4"},
		"a quota that was replaced by its copy": {func(m *member) {
			mark := m.quota.mark
			m.remove()
			m.create(localQuota{uid: "q100", mark: mark, label: true, hard: perKey{4, absent, absent}})
			m.sync()
		}, "us 4 of 4 Repairing", "us patch 4"},
	} {
		t.Run(name, func(t *testing.T) {
			s := withShares(t, 4, 4)
			s.want("eu", 6)
			harm.do(s.members["us"])
			s.next()
			s.claim("eu 4 of 4, "+harm.then, harm.sent)
			s.trouble(map[string]federation.Trouble{"us": federation.TroubleTampered})
			s.arrive()
			s.play()
			s.claim("eu 6 of 6, us 4 of 4", "")
			s.trouble(map[string]federation.Trouble{})
		})
	}
}

func TestNextBelievesTheQuotaThatItHasMadeAgain(t *testing.T) {
	s := withShares(t, 6, 4)
	s.members["us"].remove()
	s.next()
	s.arrive()
	s.next()
	s.claim("eu 6 of 6, us 4 of 4", "us patch 4") // with no other write before
}

// What was believed of a member after a lost record is void when its quota goes.
func TestNextRecoversAnewWhatOthersChange(t *testing.T) {
	s := withShares(t, 3, 3)
	s.members["us"].dead = true
	s.asked.Limit = list("pods", "10", "requests.cpu", "8m")
	s.lose("us")
	delete(s.members, "eu")
	s.asked.Want = s.asked.Want[1:]
	s.next()
	s.arrive()
	s.next()
	s.claim("us 3+0 of 3 Recovering", "") // no status says anything of cpu
	s.members["us"].remove()
	s.members["us"].dead = false
	s.members["us"].running[0] = 12
	s.next()
	s.claim("us 0+0 of ? Recovering", "us create 0+0")
	s.arrive()
	s.next()
	s.claim("us 3+0 of 12+0", "us patch 3+0")
}

// A resource that comes back before its removal was seen is no edit of others.
func TestNextTakesAResourceBack(t *testing.T) {
	s := withShares(t, 6, 4)
	both, one := list("pods", "10", "requests.cpu", "8m"), list("requests.cpu", "8m")
	s.asked.Limit = both
	s.play()
	s.asked.Limit = one
	s.next()
	s.arrive()
	s.asked.Limit = both
	s.next()
	s.trouble(map[string]federation.Trouble{})
	s.play()
	s.claim("eu 6+0 of 6+0, us 4+0 of 4+0", "")
}

// Each waits for what the other has still on record and uses no more.
func TestNextRepairsTwoMembersAtOnce(t *testing.T) {
	s := newScene(t, "eu", "us")
	s.asked.Limit = list("pods", "10", "requests.cpu", "10m")
	s.asked.Want = []federation.Share{
		{Cluster: "eu", Hard: list("pods", "9", "requests.cpu", "1m")},
		{Cluster: "us", Hard: list("pods", "1", "requests.cpu", "9m")},
	}
	s.play()
	s.members["eu"].remove()
	s.members["us"].remove()
	s.members["eu"].running = [simKeys]int{0, 8, 0}
	s.members["us"].running = [simKeys]int{8, 0, 0}
	s.asked.Want[0].Hard, s.asked.Want[1].Hard = s.asked.Want[1].Hard, s.asked.Want[0].Hard
	s.play()
	s.claim("eu 1+9 of 1+9, us 9+1 of 9+1", "")
}

// The resource is new, so nothing is on record of it, and the quota has more of it
// than fits.
func TestNextLowersWhatDoesNotFitWhileItRepairs(t *testing.T) {
	s := withShares(t, 6, 4)
	us := s.members["us"]
	us.quota.hard[1] = 50
	us.quota.hard[0] = 9
	s.next()
	s.claim("eu 6 of 6, us 4 of 4 Repairing", "us patch 4")
	s.arrive()
	s.asked.Limit = list("pods", "10", "requests.cpu", "8m")
	s.play()
	s.claim("eu 6+0 of 6+0, us 4+8 of 4+8", "")
}

func TestNextShowsWhatIsHidden(t *testing.T) {
	s := withShares(t, 6, 4)
	s.members["us"].quota.label = false
	s.want("eu", 5)
	s.next()
	s.claim("eu 5 of 6, us 4 of 4 Repairing", "eu patch 5, us patch 4")
	s.arrive()
	s.play()
	s.claim("eu 5 of 5, us 4 of 4", "")
	if !s.members["us"].quota.label {
		t.Error("the quota is still without the label")
	}
}
