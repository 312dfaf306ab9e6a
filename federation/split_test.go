package federation_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetquota/fleetquota/federation"
)

var (
	countOfPods = federation.UnitOf("pods", resource.Quantity{})
	milliCores  = federation.UnitOf("cpu", resource.Quantity{})
	bytes       = federation.UnitOf("memory", resource.MustParse("1Gi"))
)

// claim builds the claim of a member of which everything is known.
func claim(cluster string, options ...func(*federation.Claim)) federation.Claim {
	c := federation.Claim{Cluster: cluster, Known: true}
	for _, option := range options {
		option(&c)
	}
	return c
}

type claimOption = func(*federation.Claim)

func weight(w int32) claimOption  { return func(c *federation.Claim) { c.Weight = &w } }
func atLeast(n int64) claimOption { return func(c *federation.Claim) { c.Min = n } }
func atMost(n int64) claimOption  { return func(c *federation.Claim) { c.Max = &n } }
func written(n int64) claimOption { return func(c *federation.Claim) { c.Hard = n } }
func using(n int64) claimOption   { return func(c *federation.Claim) { c.Used = n } }
func room(n int64) claimOption    { return func(c *federation.Claim) { c.Room = n } }
func unknown(c *federation.Claim) { c.Known = false }

// granted is what a member was told, and what it may use.
func granted(n int64) claimOption {
	return func(c *federation.Claim) { c.Granted, c.Target = n, n }
}

func fixed(n int64) claimOption {
	return func(c *federation.Claim) { c.Fixed, c.Granted, c.Target = true, n, n }
}

func division(limit int64, claims ...federation.Claim) federation.Division {
	return federation.Division{Unit: countOfPods, Limit: limit, Claims: claims}
}

func TestWeighted(t *testing.T) {
	cases := map[string]struct {
		division federation.Division
		want     federation.Targets
	}{
		"equal weights get the same": {
			division(10, claim("a"), claim("b")),
			federation.Targets{"a": 5, "b": 5},
		},
		"what does not divide goes to the first by name": {
			division(11, claim("c"), claim("b"), claim("a")),
			federation.Targets{"a": 4, "b": 4, "c": 3},
		},
		"what does not divide goes to the largest remainder": {
			division(10, claim("a", weight(1)), claim("b", weight(2)), claim("c", weight(4))), // 1.43, 2.86, 5.71
			federation.Targets{"a": 1, "b": 3, "c": 6},
		},
		"weight 0 gets nothing": {
			division(10, claim("a", weight(0)), claim("b")),
			federation.Targets{"a": 0, "b": 10},
		},
		"weight 0 gets its min, and keeps what it uses": {
			division(10, claim("a", weight(0), atLeast(2)), claim("b", weight(0), using(3)), claim("c")),
			federation.Targets{"a": 2, "b": 0, "c": 5},
		},
		"weight 0 gets nothing even if all others have their max": {
			division(10, claim("a", weight(0)), claim("b", atMost(2))),
			federation.Targets{"a": 0, "b": 2},
		},
		"what a max leaves goes to the others": {
			division(12, claim("a", atMost(2)), claim("b"), claim("c")),
			federation.Targets{"a": 2, "b": 5, "c": 5},
		},
		"what a min takes comes from the others": {
			division(12, claim("a", atLeast(6)), claim("b"), claim("c")),
			federation.Targets{"a": 6, "b": 3, "c": 3},
		},
		"mins that do not fit are served by weight": {
			division(9, claim("a", atLeast(6)), claim("b", atLeast(9), weight(2)), claim("c", atLeast(0))),
			federation.Targets{"a": 3, "b": 6, "c": 0},
		},
		"a min above the max is the max": {
			division(9, claim("a", atLeast(6), atMost(1)), claim("b")),
			federation.Targets{"a": 1, "b": 8},
		},
		"who uses more than its share gives that back when it ends": {
			division(10, claim("a", using(8)), claim("b")),
			federation.Targets{"a": 5, "b": 2},
		},
		"fixed members are left out": {
			division(10, claim("a", fixed(4)), claim("b"), claim("c")),
			federation.Targets{"a": 4, "b": 3, "c": 3},
		},
		"fixed members may hold more than all": {
			division(10, claim("a", fixed(12)), claim("b", using(1))),
			federation.Targets{"a": 12, "b": 0},
		},
		"the largest numbers": {
			division(math.MaxInt64, claim("a", weight(1)), claim("b", weight(999_999)), claim("c", fixed(math.MaxInt64/1_000))),
			federation.Targets{"a": 9214148664818, "b": 9214139450669256214, "c": 9223372036854775},
		},
		"uses and mins that together are more than 64 bits": {
			division(10, claim("a", using(math.MaxInt64), atLeast(math.MaxInt64)), claim("b", using(math.MaxInt64), atLeast(math.MaxInt64))),
			federation.Targets{"a": 5, "b": 5},
		},
		"a negative limit allows nothing":  {division(-1, claim("a")), federation.Targets{"a": 0}},
		"negative bounds are those of 0":   {division(3, claim("a", atLeast(-1), atMost(-2)), claim("b")), federation.Targets{"a": 0, "b": 3}},
		"nobody gets nothing":              {division(3), federation.Targets{}},
		"a limit of nothing gives nothing": {division(0, claim("a"), claim("b")), federation.Targets{"a": 0, "b": 0}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.division.Weighted()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatic(t *testing.T) {
	cases := map[string]struct {
		division federation.Division
		want     federation.Targets
	}{
		"each gets what is written": {
			division(10, claim("a", written(3)), claim("b", written(7), using(9))),
			federation.Targets{"a": 3, "b": 7},
		},
		"weights and mins play no part": {
			division(10, claim("a", written(3), weight(9)), claim("b", written(2), atLeast(3))),
			federation.Targets{"a": 3, "b": 2},
		},
		"a member that is not written gets nothing": {
			division(10, claim("a", written(3)), claim("b", using(1))),
			federation.Targets{"a": 3, "b": 0},
		},
		"no share is above the max": {
			division(10, claim("a", written(3), atMost(1))),
			federation.Targets{"a": 1},
		},
		"what a fixed member holds beyond its share is missing": {
			division(10, claim("a", written(2), fixed(7)), claim("b", written(4)), claim("c", written(1))),
			federation.Targets{"a": 7, "b": 2, "c": 1},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := c.division.Static()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStaticRefusesSharesThatExceedTheLimit(t *testing.T) {
	d := division(1500, claim("a", written(1000)), claim("b", written(501)))
	d.Unit = milliCores
	targets, err := d.Static()
	var exceed *federation.SharesExceedError
	if !errors.As(err, &exceed) || targets != nil {
		t.Fatalf("got %v, %v", targets, err)
	}
	if want := "the shares of cpu add up to 1501m, more than the limit of 1500m"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	d = division(10, claim("a", written(math.MaxInt64)), claim("b", written(math.MaxInt64)))
	if _, err := d.Static(); !errors.As(err, &exceed) {
		t.Errorf("shares beyond 64 bits: %v", err)
	}
}

func TestShared(t *testing.T) {
	cases := map[string]struct {
		division federation.Division
		want     federation.Targets
	}{
		"each may use all that is left": {
			division(10, claim("a", using(3)), claim("b", using(2)), claim("c")),
			federation.Targets{"a": 8, "b": 7, "c": 5},
		},
		"with nothing left each keeps what it uses": {
			division(10, claim("a", using(9)), claim("b", using(2)), claim("c")),
			federation.Targets{"a": 9, "b": 2, "c": 0},
		},
		"no more than the max": {
			division(10, claim("a", atMost(4)), claim("b", using(5), atMost(4))),
			federation.Targets{"a": 4, "b": 4},
		},
		"a fixed member counts with its use": {
			division(10, claim("a", using(3), fixed(10)), claim("b")),
			federation.Targets{"a": 10, "b": 7},
		},
		"of whom nothing is known may use all": {
			division(10, claim("a", granted(6), unknown), claim("b")),
			federation.Targets{"a": 10, "b": 4},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.division.Shared()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnit(t *testing.T) {
	cases := map[string]struct {
		name     corev1.ResourceName
		limit    string
		down, up int64
		written  string // of down
	}{
		"pods are counted":                 {"pods", "10", 10, 10, "10"},
		"many objects":                     {"count/deployments.apps", "10k", 10_000, 10_000, "10k"},
		"parts of objects":                 {"services", "1500m", 1, 2, "1"},
		"devices are counted":              {"requests.example.com/gpu", "8", 8, 8, "8"},
		"claims of a class are counted":    {"gold.storageclass.storage.k8s.io/persistentvolumeclaims", "5", 5, 5, "5"},
		"cores are in thousandths":         {"requests.cpu", "2.5", 2500, 2500, "2500m"},
		"parts of a thousandth":            {"limits.cpu", "1500100u", 1500, 1501, "1500m"},
		"cpu is requests.cpu":              {"cpu", "3", 3000, 3000, "3"},
		"cores in Ki are decimal":          {"cpu", "1Ki", 1_024_000, 1_024_000, "1024"},
		"memory keeps its format":          {"limits.memory", "1.5Gi", 3 << 29, 3 << 29, "1536Mi"},
		"memory keeps its other format":    {"memory", "1500M", 1_500_000_000, 1_500_000_000, "1500M"},
		"memory with an exponent keeps it": {"memory", "15e8", 1_500_000_000, 1_500_000_000, "1500e6"},
		"parts of a byte":                  {"memory", "1500m", 1, 2, "1"},
		"storage of a class":               {"gold.storageclass.storage.k8s.io/requests.storage", "1Ti", 1 << 40, 1 << 40, "1Ti"},
		"huge pages":                       {"hugepages-2Mi", "4Mi", 4 << 20, 4 << 20, "4Mi"},
		"the largest amount":               {"pods", "9223372036854775807", math.MaxInt64, math.MaxInt64, "9223372036854775807"},
		"less than nothing":                {"pods", "-1500m", -2, -1, "-2"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			limit := resource.MustParse(c.limit)
			unit := federation.UnitOf(c.name, limit)
			down, errDown := unit.Down(limit)
			up, errUp := unit.Up(limit)
			if down != c.down || up != c.up || errDown != nil || errUp != nil {
				t.Errorf("down %d (%v), up %d (%v)", down, errDown, up, errUp)
			}
			written := unit.Quantity(down)
			if written.String() != c.written {
				t.Errorf("written %s, want %s", written.String(), c.written)
			}
		})
	}
}

func TestUnitRefusesWhatDoesNotFit(t *testing.T) {
	for _, c := range [][2]string{
		{"pods", "9223372036854775808"},
		{"pods", "9223372036854775807.5"}, // fits as a limit, but not as a use
		{"cpu", "9223372036854776"},
		{"memory", "10E"},
		{"memory", "1e99"},
		{"memory", "-1e99"},
	} {
		quantity := resource.MustParse(c[1])
		_, err := federation.UnitOf(corev1.ResourceName(c[0]), quantity).Up(quantity)
		var problem *federation.OutOfRangeError
		if !errors.As(err, &problem) || string(problem.Resource) != c[0] {
			t.Errorf("%s of %s: %v", c[1], c[0], err)
		}
	}
}
