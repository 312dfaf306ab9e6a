package main

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// amountOf is so much of so much; "-" is not known.
func amountOf(used, hard string) amount {
	a := amount{resource: "pods", hard: resource.MustParse(hard)}
	if used != "-" {
		q := resource.MustParse(used)
		a.used = &q
	}
	return a
}

func TestPercentAndState(t *testing.T) {
	for name, c := range map[string]struct{ used, hard, percent, state string }{
		"nothing used":                       {"0", "10", "0%", stateOK},
		"rounded down below full":            {"996m", "1", "99%", stateAlmostFull},
		"just below full is not full":        {"9999999999n", "10", "99%", stateAlmostFull},
		"full is exactly full":               {"1Gi", "1024Mi", "100%", stateFull},
		"rounded up above full":              {"1002m", "1", "101%", stateExceeded},
		"just above full is exceeded":        {"10000000001n", "10", "101%", stateExceeded},
		"90 % is ok":                         {"9", "10", "90%", stateOK},
		"above 90 % is almost full":          {"9001m", "10", "90%", stateAlmostFull},
		"twice the limit":                    {"20", "10", "200%", stateExceeded},
		"a limit of nothing, nothing used":   {"0", "0", "0%", stateOK},
		"a limit of nothing, something used": {"1", "0", ">9999%", stateExceeded},
		"far above the limit":                {"1M", "1", ">9999%", stateExceeded},
		"in exbibytes":                       {"4Ei", "5Ei", "80%", stateOK},
		"of an absurd limit":                 {"3", "1e999999999", "0%", stateOK},
		"an absurd use":                      {"1e999999999", "3", ">9999%", stateExceeded},
		"not known":                          {"-", "10", unknown, unknown},
		"not known of nothing":               {"-", "0", unknown, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			a := amountOf(c.used, c.hard)
			if got := a.percent(); got != c.percent {
				t.Errorf("percent %s, want %s", got, c.percent)
			}
			if got := a.state(); got != c.state {
				t.Errorf("state %s, want %s", got, c.state)
			}
		})
	}
}

func TestOnlyFullIsPrintedAsFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		used := resource.NewMilliQuantity(rapid.Int64Range(0, 100_000).Draw(t, "used"), resource.DecimalSI)
		hard := resource.NewMilliQuantity(rapid.Int64Range(1, 100_000).Draw(t, "hard"), resource.DecimalSI)
		a := amount{used: used, hard: *hard}
		if full := used.Cmp(*hard) == 0; full != (a.percent() == "100%") || full != (a.state() == stateFull) {
			t.Errorf("%v of %v is %s, %s", used, hard, a.percent(), a.state())
		}
		if exceeded := used.Cmp(*hard) > 0; exceeded != (a.state() == stateExceeded) || exceeded != a.above(big.NewRat(100, 1)) {
			t.Errorf("%v of %v is %s", used, hard, a.state())
		}
	})
}

func TestWhatIsMissingIsNotOK(t *testing.T) {
	a := amountOf("1", "10")
	a.missing = []string{"us-1"}
	if got := a.state(); got != unknown {
		t.Errorf("got %s", got)
	}
	a = amountOf("11", "10")
	a.missing = []string{"us-1"}
	if got := a.state(); got != stateExceeded {
		t.Errorf("got %s", got)
	}
}

func TestByUseIsFullestFirstAndUnknownLast(t *testing.T) {
	all := []amount{amountOf("-", "1"), amountOf("1", "2"), amountOf("0", "0"), amountOf("1", "0"), amountOf("3", "2")}
	slices.SortStableFunc(all, byUse)
	var got []string
	for _, a := range all {
		got = append(got, a.usedText()+"/"+a.hard.String())
	}
	if text := strings.Join(got, " "); text != "1/0 3/2 1/2 0/0 unknown/1" {
		t.Errorf("got %s", text)
	}
}

func TestResourcesAreChosenByEitherName(t *testing.T) {
	quota := &v1alpha1.FleetQuota{}
	quota.Spec.Hard = corev1.ResourceList{"requests.cpu": resource.MustParse("1"), "memory": resource.MustParse("1"), "pods": resource.MustParse("1")}
	for asked, want := range map[string]string{
		"cpu":                  "requests.cpu",
		"requests.memory,pods": "memory,pods",
		"all":                  "memory,pods,requests.cpu",
		"secrets":              "",
	} {
		var got []string
		for _, a := range chosen(amounts(quota), strings.Split(asked, ",")) {
			got = append(got, string(a.resource))
		}
		if text := strings.Join(got, ","); text != want {
			t.Errorf("%s chooses %q, want %q", asked, text, want)
		}
	}
}

// A tenant may write any limit; whoever looks at it shall not wait for hours.
func TestAbsurdLimitsCostNoTime(t *testing.T) {
	absurd := corev1.ResourceList{"pods": resource.MustParse("1e999999999"), "secrets": resource.MustParse("1e99999999")}
	quota := &v1alpha1.FleetQuota{Spec: v1alpha1.FleetQuotaSpec{Hard: absurd}}
	quota.Status = v1alpha1.FleetQuotaStatus{Hard: absurd, Used: absurd, Clusters: []v1alpha1.ClusterUsage{{Name: "a", Used: absurd}, {Name: "b"}}}
	all := amounts(quota)
	slices.SortFunc(all, byUse)
	if got := all[0].left() + " " + all[1].state(); got != "0 "+stateFull {
		t.Error(got)
	}
	if worst := worstFirst(quota)(&quota.Status.Clusters[0], &quota.Status.Clusters[1]); worst >= 0 {
		t.Error("a member with an absurd use is not the worst")
	}
}

func TestAQuantityIsNotChangedByItsComparison(t *testing.T) {
	a := amountOf("100000Gi", "50000Gi")
	_, _, _ = a.percent(), a.state(), a.above(big.NewRat(80, 1))
	if a.usedText() != "100000Gi" || a.hard.String() != "50000Gi" {
		t.Errorf("now %s of %s", a.usedText(), a.hard.String())
	}
}
