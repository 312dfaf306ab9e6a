package main

import (
	"cmp"
	"math/big"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// unknown is printed in place of what the hub does not know.
const unknown = "unknown"

// The states of an amount, in the words of alerts and dashboards.
const (
	stateOK         = "ok"
	stateAlmostFull = "almost full" // above 90 %
	stateFull       = "full"        // 100 %
	stateExceeded   = "exceeded"    // above 100 %
)

const (
	almostFullPercent = 90
	fullPercent       = 100
	maxPercent        = 9999 // larger ones are printed as >9999%
)

// amount is one resource of a quota: how much of how much.
type amount struct {
	resource corev1.ResourceName
	used     *resource.Quantity // nil: not known
	hard     resource.Quantity
	missing  []string // members of which no number is known; used is without them
}

// amounts are the resources that a quota limits, sorted by name. The limit is
// the one that the hub compares with, or the one asked for where the hub has
// not taken it up yet; of that the use is not known.
func amounts(quota *v1alpha1.FleetQuota) []amount {
	var all []amount
	for name, hard := range quota.Status.Hard {
		a := amount{resource: name, hard: hard, missing: missing(quota, name)}
		if used, known := quota.Status.Used[name]; known {
			a.used = &used
		}
		all = append(all, a)
	}
	for name, hard := range quota.Spec.Hard {
		if _, taken := quota.Status.Hard[name]; !taken {
			all = append(all, amount{resource: name, hard: hard})
		}
	}
	for i := range all {
		all[i] = all[i].bounded()
	}
	slices.SortFunc(all, func(a, b amount) int { return cmp.Compare(a.resource, b.resource) })
	return all
}

// bounded takes what nobody can reckon with for the largest that there is.
func (a amount) bounded() amount {
	a.hard = evaluator.Bound(a.hard)
	if a.used != nil {
		a.used = new(evaluator.Bound(*a.used))
	}
	return a
}

// missing names the members of which not even a last number is known: it is
// absent then, while a known 0 is there.
func missing(quota *v1alpha1.FleetQuota, name corev1.ResourceName) []string {
	var names []string
	for _, member := range quota.Status.Clusters {
		if _, known := member.Used[name]; !known {
			names = append(names, member.Name)
		}
	}
	return names
}

// chosen keeps the amounts of the named resources; with none or "all", all.
func chosen(all []amount, resources []string) []amount {
	if len(resources) == 0 || slices.Contains(resources, allResources) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(a amount) bool {
		return !slices.ContainsFunc(resources, func(name string) bool {
			return oneName(corev1.ResourceName(name)) == oneName(a.resource)
		})
	})
}

// oneName gives the two names of one amount the same name.
func oneName(name corev1.ResourceName) corev1.ResourceName {
	switch name {
	case corev1.ResourceCPU:
		return corev1.ResourceRequestsCPU
	case corev1.ResourceMemory:
		return corev1.ResourceRequestsMemory
	case corev1.ResourceEphemeralStorage:
		return corev1.ResourceRequestsEphemeralStorage
	default:
		return name
	}
}

// above says whether more than so many percent are known to be used.
func (a amount) above(percent *big.Rat) bool {
	return a.used != nil && a.compare(percent) > 0
}

// compare compares the use with so many percent of the limit, exactly. Of a
// limit of 0, a use of 0 is 0 %, and any other is more than every percentage.
func (a amount) compare(percent *big.Rat) int {
	used, hard := rational(*a.used), rational(a.hard)
	if hard.Sign() == 0 && used.Sign() == 0 {
		return new(big.Rat).Cmp(percent)
	}
	if hard.Sign() == 0 {
		return used.Sign()
	}
	return used.Mul(used, big.NewRat(fullPercent, 1)).Cmp(hard.Mul(hard, percent))
}

// percent prints the use in whole percent of the limit, rounded away from
// 100 %: 99.6 % is 99%, 100.2 % is 101%, and 100% is printed for nothing else.
func (a amount) percent() string {
	switch {
	case a.used == nil:
		return unknown
	case a.compare(big.NewRat(maxPercent, 1)) > 0:
		return ">" + big.NewInt(maxPercent).String() + "%"
	case a.hard.IsZero():
		return "0%"
	}
	share := rational(*a.used)
	share.Mul(share, big.NewRat(fullPercent, 1)).Quo(share, rational(a.hard))
	whole, rest := new(big.Int).QuoRem(share.Num(), share.Denom(), new(big.Int))
	if rest.Sign() > 0 && whole.Cmp(big.NewInt(fullPercent)) >= 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole.String() + "%"
}

// state is never ok for what may be more than it seems.
func (a amount) state() string {
	switch {
	case a.used == nil:
		return unknown
	case a.compare(big.NewRat(fullPercent, 1)) > 0:
		return stateExceeded
	case a.compare(big.NewRat(fullPercent, 1)) == 0:
		return stateFull
	case a.compare(big.NewRat(almostFullPercent, 1)) > 0:
		return stateAlmostFull
	case len(a.missing) > 0:
		return unknown
	default:
		return stateOK
	}
}

// byUse sorts the most used first, in percent of the limit, and what is not
// known last.
func byUse(a, b amount) int {
	switch {
	case a.used == nil && b.used == nil:
		return 0
	case a.used == nil:
		return 1
	case b.used == nil:
		return -1
	}
	return cmp.Or(cmp.Compare(b.overZero(), a.overZero()), b.share().Cmp(a.share()))
}

// share is the use as a part of the limit; 0 of 0 is 0.
func (a amount) share() *big.Rat {
	if a.hard.IsZero() {
		return new(big.Rat)
	}
	return new(big.Rat).Quo(rational(*a.used), rational(a.hard))
}

// overZero is 1 where something is used of a limit of 0: more than any share.
func (a amount) overZero() int {
	if a.hard.IsZero() && !a.used.IsZero() {
		return 1
	}
	return 0
}

// usedText prints the use; canonical, as the API does.
func (a amount) usedText() string {
	if a.used == nil {
		return unknown
	}
	return a.used.String()
}

// rational is the exact value of a quantity, which it leaves as it is.
func rational(q resource.Quantity) *big.Rat {
	own := evaluator.Bound(q.DeepCopy())
	dec := own.AsDec()
	value := new(big.Rat).SetInt(dec.UnscaledBig())
	scale := big.NewInt(int64(dec.Scale()))
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), new(big.Int).Abs(scale), nil)) //nolint:mnd // decimal
	if scale.Sign() < 0 {
		return value.Mul(value, power)
	}
	return value.Quo(value, power)
}
