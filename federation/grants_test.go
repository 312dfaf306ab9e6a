package federation_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

func TestNextRaisesAMemberAfterItsFirstWriteWasConfirmed(t *testing.T) {
	s := newScene(t, "eu")
	s.want("eu", 6)
	s.next()
	s.claim("eu 0 of ?", "eu create 0")
	s.members["eu"].running[0] = 2 // before there is a quota
	s.arrive()
	s.members["eu"].quota.limit, s.members["eu"].quota.used = nothingThere, nothingThere
	s.next()
	s.claim("eu 0 of ?", "") // no status: not believed
	s.arrive()
	s.next()
	s.claim("eu 6 of 6", "eu patch 6")
	s.arrive()
	s.next()
	s.claim("eu 6 of 6", "")
}

func TestNextShrinksBeforeItGrows(t *testing.T) {
	s := withShares(t, 6, 4)
	s.members["eu"].running[0] = 4
	s.members["eu"].sync()
	s.want("eu", 2)
	s.want("us", 8)
	s.next()
	s.claim("eu 2 of 6, us 4 of 4", "eu patch 2") // a raise waits for the credit
	s.members["eu"].dead = true
	s.arrive()
	s.next()
	s.claim("eu 2 of 6, us 4 of 4", "") // no credit while status.hard is above
	s.members["eu"].dead = false
	s.arrive()
	s.next()
	s.claim("eu 2 of 4, us 6 of 6", "us patch 6") // a credit leaves what is used; a raise takes what is left
	s.arrive()
	s.members["eu"].running[0] = 1
	s.members["eu"].sync()
	s.next()
	s.claim("eu 2 of 2, us 8 of 8", "us patch 8")
}

func TestNextKeepsTheLimitWhateverIsWanted(t *testing.T) {
	s := newScene(t, "eu", "us")
	s.want("us", 7) // first in order
	s.want("eu", 9)
	s.play()
	s.claim("eu 3 of 3, us 7 of 7", "")
}

func TestNextFollowsTheLimit(t *testing.T) {
	s := withShares(t, 6, 4)
	for _, m := range s.members {
		m.running[0] = 3
		m.sync()
	}
	onRecord := func(want int) {
		t.Helper()
		if got := perKeyOf(s.record.Spec.Hard)[0]; got != want {
			t.Errorf("limit on record %d, want %d", got, want)
		}
	}
	s.asked.Limit = list("pods", "5")
	s.want("eu", 3)
	s.want("us", 2)
	s.next()
	onRecord(10) // nothing was given back yet
	s.arrive()
	s.next()
	s.claim("eu 3 of 3, us 2 of 3", "")
	onRecord(6) // down to what is granted
	s.members["us"].running[0] = 1
	s.members["us"].sync()
	s.next()
	onRecord(5)
	s.asked.Limit = list("pods", "20")
	s.next()
	onRecord(20) // up at once
}

func TestNextAdoptsOnlyWhereItMay(t *testing.T) {
	s := newScene(t, "eu", "us")
	s.want("eu", 6)
	s.play()
	s.members["us"].create(localQuota{uid: "q100", hard: perKey{8, 3, absent}})
	s.members["us"].running = [simKeys]int{4, 1, 0}
	s.members["us"].sync()
	s.want("us", 4)
	s.next()
	s.claim("eu 6 of 6", "")
	s.trouble(map[string]federation.Trouble{"us": federation.TroubleForeign})

	s.asked.Adopt = true
	s.next()
	s.claim("eu 6 of 6, us 4 of ?", "us patch 4") // lowered to what fits
	s.arrive()
	s.next()
	s.claim("eu 6 of 6, us 4 of 4", "")
	if s.members["us"].quota.hard != (perKey{4, 3, absent}) {
		t.Errorf("the quota is %v", s.members["us"])
	}
}

func TestNextAdoptsWhatFitsAsItIs(t *testing.T) {
	s := newScene(t, "eu")
	s.asked.Adopt = true
	s.members["eu"].create(localQuota{uid: "q100", hard: perKey{8, absent, absent}})
	s.members["eu"].sync()
	s.want("eu", 9)
	s.next()
	s.claim("eu 8 of ?", "eu patch 8")
	s.arrive()
	s.next()
	s.claim("eu 9 of 9", "eu patch 9")
}

func TestNextWaitsForUseThatDoesNotFit(t *testing.T) {
	s := newScene(t, "eu", "us")
	s.want("eu", 8)
	s.play()
	s.members["us"].running[0] = 5
	s.want("us", 2)
	s.play()
	s.claim("eu 8 of 8, us 0 of ?", "")
	s.trouble(map[string]federation.Trouble{"us": federation.TroubleDoesNotFit})
	s.members["us"].running[0] = 1
	s.members["us"].sync()
	s.play()
	s.claim("eu 8 of 8, us 2 of 2", "")
	s.trouble(map[string]federation.Trouble{})
}

func TestNextSendsALostPatchAgainWithAnotherRevision(t *testing.T) {
	s := withShares(t, 2, 4)
	s.want("eu", 6)
	s.next()
	lost := s.pass.Writes[0]
	s.next()
	s.claim("eu 6 of 6, us 4 of 4", "eu patch 6")
	again := s.pass.Writes[0]
	if again.Mark == lost.Mark || again.Test != lost.Test || again.UID != lost.UID {
		t.Errorf("sent %+v, and again %+v", lost, again)
	}
	s.arrive()
	if s.members["eu"].take(&letter{Write: lost}, s.newID) {
		t.Error("the lost patch has an effect after the other")
	}
}

func TestNextFollowsTheNamesOfTheLimit(t *testing.T) {
	s := withShares(t, 6, 4)
	s.members["eu"].running[1] = 3
	s.asked.Limit = list("pods", "10", "requests.cpu", "8m")
	s.next()
	s.claim("eu 6+0 of 6, us 4+0 of 4", "eu patch 6+0, us patch 4+0") // first to nothing
	s.arrive()
	s.next()
	s.claim("eu 6+0 of 6+3, us 4+0 of 4+0", "")
	s.asked.Limit = list("requests.cpu", "8m")
	s.asked.Want = []federation.Share{{Cluster: "eu", Hard: list("requests.cpu", "5m")}, {Cluster: "us", Hard: list("requests.cpu", "3m")}}
	s.next()
	s.claim("eu 6+5 of 5, us 4+3 of 3", "eu patch 5 -pods, us patch 3 -pods")
	s.arrive()
	s.next()
	s.claim("eu 5 of 5, us 3 of 3", "")
	if s.members["eu"].quota.hard != (perKey{absent, 5, absent}) {
		t.Errorf("the quota is %v", s.members["eu"])
	}
}

func TestNextReleases(t *testing.T) {
	s := withShares(t, 6, 4)
	s.release("us")
	s.want("eu", 10)
	s.next()
	s.claim("eu 6 of 6, us 4 of 4 Releasing", "us release") // it counts until its marks are gone
	s.arrive()
	s.next()
	s.claim("eu 10 of 10", "eu patch 10")
	if us := s.members["us"]; us.quota.mark != "" || us.quota.hard[0] != 4 {
		t.Errorf("the quota is %v", us)
	}
}

func TestNextReleasesByDeleting(t *testing.T) {
	s := withShares(t, 6, 4)
	s.release("us")
	s.asked.Delete = true
	s.next()
	s.claim("eu 6 of 6, us 4 of 4 Releasing", "us delete")
	s.arrive()
	s.next()
	s.claim("eu 6 of 6", "")
}

func TestNextTakesAMemberBackThatWasReleased(t *testing.T) {
	for name, first := range map[string]func(*scene){
		"and has its share":              (*scene).play,
		"and has not got its first unit": func(s *scene) { s.next(); s.arrive() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "eu")
			s.want("eu", 6)
			first(s)
			s.release("eu")
			s.next()
			s.asked.Release = nil
			s.want("eu", 7)
			s.play()
			s.claim("eu 7 of 7", "")
		})
	}
}

func TestNextDropsTheRowOfAMember(t *testing.T) {
	for name, gone := range map[string]struct {
		do      func(*scene)
		trouble map[string]federation.Trouble
	}{
		"that has no namespace": {func(s *scene) {
			s.members["us"].namespace = false
		}, map[string]federation.Trouble{"us": federation.TroubleNoNamespace}},
		"that is fenced, and out of reach": {func(s *scene) {
			s.asked.Fenced = []string{"us"}
			s.members["us"].cut = true
		}, map[string]federation.Trouble{"us": federation.TroubleFenced}},
		"that is fenced, and answers": {func(s *scene) {
			s.asked.Fenced = []string{"us"}
			s.asked.Release = []string{"us"}
		}, map[string]federation.Trouble{"us": federation.TroubleFenced}},
	} {
		t.Run(name, func(t *testing.T) {
			s := withShares(t, 6, 4)
			s.want("eu", 10)
			gone.do(s)
			s.next()
			s.claim("eu 10 of 10", "eu patch 10")
			s.trouble(gone.trouble)
		})
	}
}

func TestNextKeepsTheRowOfAMemberOutOfReach(t *testing.T) {
	s := withShares(t, 6, 4)
	s.members["us"].cut = true
	s.want("eu", 10)
	s.want("us", 0)
	s.next()
	s.claim("eu 6 of 6, us 4 of 4", "")
}

func TestNextRefusesOtherScopes(t *testing.T) {
	s := withShares(t, 6, 4)
	seen := s.members["us"].see()
	seen.OtherScopes = true
	s.want("us", 2)
	pass := s.record.Next(federation.Observation{Limit: s.asked.Limit, Want: s.asked.Want, Seen: map[string]federation.Seen{"us": seen}})
	if len(pass.Writes) > 0 || pass.Trouble["us"] != federation.TroubleScopes {
		t.Errorf("writes %v, trouble %v", pass.Writes, pass.Trouble)
	}
}

func TestCurrentAsksForTheLastWriteToTheVeryQuota(t *testing.T) {
	record := federation.Record{ID: "r"}
	row := v1alpha1.Grant{Cluster: "eu", Revision: 3, QuotaUID: "q"}
	for name, c := range map[string]struct {
		seen federation.Seen
		want bool
	}{
		"the last write":       {federation.Seen{Present: true, UID: "q", Mark: "r.3"}, true},
		"an earlier write":     {federation.Seen{Present: true, UID: "q", Mark: "r.2"}, false},
		"of another record":    {federation.Seen{Present: true, UID: "q", Mark: "s.3"}, false},
		"in a copy":            {federation.Seen{Present: true, UID: "p", Mark: "r.3"}, false},
		"no mark":              {federation.Seen{Present: true, UID: "q"}, false},
		"no quota":             {federation.Seen{}, false},
		"what is not a number": {federation.Seen{Present: true, UID: "q", Mark: "r.three"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := record.Current(&row, c.seen); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// A quota that a user makes before ours has arrived is the user's.
func TestNextLeavesAQuotaThatCameFirst(t *testing.T) {
	s := newScene(t, "eu")
	s.want("eu", 6)
	s.next()
	s.members["eu"].create(localQuota{uid: "q100", hard: perKey{3, absent, absent}})
	s.arrive()
	s.next()
	s.claim("", "")
	s.trouble(map[string]federation.Trouble{"eu": federation.TroubleForeign})
}

func TestNextTakesAMemberBackOfWhichNothingWasConfirmed(t *testing.T) {
	s := newScene(t, "eu")
	s.want("eu", 6)
	s.members["eu"].dead = true
	s.next()
	s.arrive()
	s.release("eu")
	s.next()
	s.claim("eu 0 of ? Releasing", "eu release")
	s.asked.Release = nil
	s.want("eu", 7)
	s.next()
	s.claim("eu 0 of ?", "eu patch 0")
	s.members["eu"].dead = false
	s.arrive()
	s.play()
	s.claim("eu 7 of 7", "")
}

func TestNextReleasesWhatACreationThatWasLateHasMade(t *testing.T) {
	s := newScene(t, "eu")
	s.want("eu", 6)
	s.next()
	late := s.pass.Writes[0]
	s.release("eu")
	s.next()
	s.claim("", "")
	s.members["eu"].take(&letter{Write: late}, s.newID)
	s.next()
	s.claim("eu ? of ? Releasing", "eu release")
	s.arrive()
	s.next()
	s.claim("", "")
}

// A deletion that is late finds the quota changed, if the member has come back.
func TestNextReleasesNothingThatHasChangedSince(t *testing.T) {
	s := withShares(t, 6, 4)
	s.release("us")
	s.asked.Delete = true
	s.next()
	late, read := s.pass.Writes[0], s.read["us"]
	s.asked.Release = nil
	s.want("us", 4)
	s.play()
	s.claim("eu 6 of 6, us 4 of 4", "")
	if s.members["us"].take(&letter{Write: late, read: read}, s.newID) {
		t.Error("the quota is deleted")
	}
}

// Each may have all that is left; the limit on record follows what is granted.
func TestNextSharesMoreThanTheLimit(t *testing.T) {
	s := withShares(t, 6, 4)
	s.asked.Shared = true
	s.want("eu", 10)
	s.want("us", 10)
	s.play()
	s.claim("eu 10 of 10, us 10 of 10", "")
	if got := perKeyOf(s.record.Spec.Hard)[0]; got != 20 {
		t.Errorf("limit on record %d, want 20", got)
	}
	s.asked.Shared = false
	s.want("eu", 6)
	s.want("us", 4)
	s.play()
	s.claim("eu 6 of 6, us 4 of 4", "")
	if got := perKeyOf(s.record.Spec.Hard)[0]; got != 10 {
		t.Errorf("limit on record %d, want 10", got)
	}
}

func TestUnboundedAsksForEachResource(t *testing.T) {
	row := v1alpha1.Grant{Granted: list("pods", "0", "requests.cpu", "2")}
	for name, c := range map[string]struct {
		limit corev1.ResourceList
		want  bool
	}{
		"nothing is limited":        {nil, false},
		"all are bounded, one to 0": {list("pods", "3", "requests.cpu", "3"), false},
		"one is not":                {list("pods", "3", "requests.memory", "3"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := federation.Unbounded(row, c.limit); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestRecordHasRowsByNameAndTheirSum(t *testing.T) {
	r := federation.Record{Spec: v1alpha1.FleetGrantSpec{Members: []v1alpha1.Grant{
		{Cluster: "ap", Granted: list("pods", "2")}, {Cluster: "eu", Granted: list("pods", "3", "requests.cpu", "1")}, {Cluster: "us"},
	}}}
	for _, name := range []string{"ap", "eu", "us"} {
		if row := r.Row(name); row == nil || row.Cluster != name {
			t.Errorf("row of %s: %v", name, row)
		}
	}
	if row := r.Row("sa"); row != nil {
		t.Errorf("row of sa: %v", row)
	}
	if got, want := r.Granted(), list("pods", "5", "requests.cpu", "1"); !federation.Equal(got, want) {
		t.Errorf("granted %v, want %v", got, want)
	}
	if got := (federation.Record{}).Granted(); len(got) > 0 {
		t.Errorf("of nothing %v", got)
	}
}
