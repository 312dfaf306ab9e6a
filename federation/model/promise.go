package model

// broken says whether the promise is broken in s: for some key, what the
// members may use adds up to more than the limit on record. A member that the
// promise does not cover counts with what the record keeps for it; while the
// record is not whole, with nothing.
func (o *Options) broken(s *state) bool {
	var sum amounts
	whole := s.lost == (amounts{})
	for i := range o.Members {
		var part amounts
		switch {
		case s.covered[i]:
			part = o.mayUse(s, i)
		case whole:
			part = s.record.rows[i].granted
		}
		for k := range o.Keys {
			sum[k] += part[k]
		}
	}
	limit := s.lost
	if s.record.made {
		limit = limit.most(s.record.hard)
	}
	return !sum.within(limit)
}

// mayUse is the most that member i may use: by what is stored there, and by
// every write that could still take effect, alone or after another.
func (o *Options) mayUse(s *state, i int) amounts {
	q := s.quotas[i]
	most := q.hard.most(q.limit).most(q.used)
	annotations := uint64(1) << q.grant
	for range o.Writes {
		for _, w := range s.writes[:o.Writes] {
			if w.kind != writePatch || int(w.member) != i || w.spent {
				continue
			}
			if o.Variant.NoTest || o.Variant.ResourceVersionOnly || annotations>>w.test&1 == 1 {
				annotations |= 1 << w.grant
				if w.sets {
					most = most.most(w.hard)
				}
			}
		}
	}
	return most
}
