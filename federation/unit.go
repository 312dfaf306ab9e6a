package federation

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetquota/fleetquota/evaluator"
)

// Unit turns the quantities of one resource into whole units and back: cpu into
// thousandths of a core, sizes into bytes, everything else into objects.
type Unit struct {
	name   corev1.ResourceName
	scale  resource.Scale  // of one unit
	format resource.Format // of quantities that are made
	step   int64           // the least that is worth a move
}

// UnitOf is the unit of a resource. Sizes are written in the format of the
// limit, as its author likes them.
func UnitOf(name corev1.ResourceName, limit resource.Quantity) Unit {
	switch {
	case ofCPU(name):
		const someCPU = 10 // a hundredth of a core: few containers ask for less
		return Unit{name, resource.Milli, resource.DecimalSI, someCPU}
	case ofBytes(name):
		const someBytes = 1 << 20 // containers and volumes are sized in MiB
		return Unit{name, 0, cmp.Or(limit.Format, resource.DecimalSI), someBytes}
	}
	return Unit{name, 0, resource.DecimalSI, 1}
}

func ofCPU(name corev1.ResourceName) bool {
	return evaluator.Canonical(name) == corev1.ResourceRequestsCPU || name == corev1.ResourceLimitsCPU
}

func ofBytes(name corev1.ResourceName) bool {
	base := string(name)
	if _, rest, found := strings.Cut(base, ".storageclass.storage.k8s.io/"); found {
		base = rest
	}
	base = strings.TrimPrefix(strings.TrimPrefix(base, "requests."), "limits.")
	switch base {
	case "memory", "storage", "ephemeral-storage":
		return true
	}
	return strings.HasPrefix(base, corev1.ResourceHugePagesPrefix)
}

// Down is how many whole units a limit allows.
func (u Unit) Down(limit resource.Quantity) (int64, error) {
	whole, _ := u.whole(limit) // DivMod rounds towards less
	return u.fit(whole, limit)
}

// Up is how many whole units an amount in use takes.
func (u Unit) Up(used resource.Quantity) (int64, error) {
	whole, rest := u.whole(used)
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return u.fit(whole, used)
}

func (u Unit) whole(q resource.Quantity) (units, rest *big.Int) {
	one := *resource.NewScaledQuantity(1, u.scale)
	return new(big.Int).DivMod(nanos(q), nanos(one), new(big.Int))
}

func (u Unit) fit(whole *big.Int, q resource.Quantity) (int64, error) {
	if !whole.IsInt64() || math.Abs(q.AsApproximateFloat64()) > math.MaxInt64 { // nanos has bounded what is absurd
		return 0, &OutOfRangeError{u.name, q}
	}
	return whole.Int64(), nil
}

// Quantity is so many units as they are written.
func (u Unit) Quantity(units int64) resource.Quantity {
	q := resource.NewScaledQuantity(units, u.scale)
	q.Format = u.format
	return *q
}

// OutOfRangeError says that an amount of a resource is too large to divide.
type OutOfRangeError struct {
	Resource corev1.ResourceName
	Quantity resource.Quantity
}

// Error names the resource and the amount.
func (e *OutOfRangeError) Error() string {
	return fmt.Sprintf("%s of %s is out of range: more than 64 bits of its unit cannot be divided", e.Quantity.String(), e.Resource)
}
