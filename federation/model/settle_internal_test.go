package model

// settle plays on from s without any more faults: one leader is left, what is
// on its way arrives, and each member's native controller does its work. It
// returns the number of rounds until every member has its share in force and
// the shares add up to the user's limit, or -1 if that does not come.
func (o *Options) settle(s state) int {
	good := *o
	good.Fine, good.UserChanges = false, false
	for l := range s.leaders {
		s.leaders[l] = leader{}
	}
	// A round does what can be done for every member. It is done again while
	// it helps, then with adoption that lowers, then with a little less use.
	lowers := false
	for round := range 60 {
		before := s
		s = good.round(s, lowers)
		switch {
		case good.settled(&s):
			return round
		case good.canonical(s) != good.canonical(before):
		case !lowers:
			lowers = true
		default:
			s = good.pick(s, func(n next) bool { return n.step.kind == stepRelease })
		}
	}
	return -1
}

// share is what member i shall have: the first one most.
func (o *Options) share(s *state, i int) amounts {
	var a amounts
	for k := range o.Keys {
		a[k] = s.user[k] / uint8(o.Members)
		if i == 0 {
			a[k] += s.user[k] % uint8(o.Members)
		}
	}
	return a
}

func (o *Options) settled(s *state) bool {
	if !s.record.made || s.record.hard != s.user {
		return false
	}
	for i := range o.Members {
		row, q, want := s.record.rows[i], s.quotas[i], o.share(s, i)
		inForce := q.present && q.synced && q.hard == want && q.limit == want && q.grant == row.revision
		if row.state != rowFull || row.granted != want || !inForce {
			return false
		}
	}
	return true
}

func (o *Options) round(s state, lowers bool) state {
	s = o.pick(s, func(n next) bool { return n.step.kind == stepMakeRecord })
	for i := range o.Members {
		s = o.arrive(s)
		for _, what := range []op{opBelieve, opCredit, opSeen} {
			read := o.pick(s, func(n next) bool {
				return n.step.kind == stepRead && n.step.leader == 0 && n.step.member == i && n.state.leaders[0].op == what
			})
			if read == s {
				continue
			}
			if done := o.act(read, i, lowers); done != read && done != s {
				s = done
				break
			}
		}
	}
	return o.arrive(s)
}

// arrive delivers all that is on its way, and lets every status follow.
func (o *Options) arrive(s state) state {
	for {
		t := o.pick(s, func(n next) bool {
			return n.step.kind == stepDeliver || n.step.kind == stepRefused || n.step.kind == stepSync
		})
		if t == s {
			return s
		}
		s = t
	}
}

// act is what a good leader does about member i.
func (o *Options) act(s state, i int, lowers bool) state {
	row, want := s.record.rows[i], o.share(&s, i)
	if s.leaders[0].op == opSeen && row.target == want && o.inForce(&s, i) {
		return s
	}
	fence := func(n next) bool {
		w := n.state.writes[0] // all that was on its way has arrived
		return n.step.kind == stepFence && (w.kind == writeCreate || w.sets == lowers)
	}
	intent := func(target amounts) func(next) bool {
		return func(n next) bool {
			return n.step.kind == stepIntent && n.state.record.rows[i].target == target
		}
	}
	confirm := func(n next) bool { return n.step.kind == stepBelieve || n.step.kind == stepCredit }
	for _, take := range []func(next) bool{confirm, fence, intent(want), intent(want.least(row.granted))} {
		t := o.pick(s, func(n next) bool { return n.step.leader == 0 && take(n) })
		if t != s {
			return t
		}
	}
	return s
}

func (o *Options) inForce(s *state, i int) bool {
	row, q := s.record.rows[i], s.quotas[i]
	return row.state == rowFull && q.grant == row.revision && q.hard == row.target && q.limit == row.target && row.own
}

// pick is what the first step that suits leads to, or s if none does.
func (o *Options) pick(s state, suits func(next) bool) state {
	for _, n := range o.after(s, nil) {
		if suits(n) {
			return n.state
		}
	}
	return s
}

func (a amounts) least(b amounts) amounts {
	for k := range a {
		a[k] = min(a[k], b[k])
	}
	return a
}
