package evaluator

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// deviceClaims charges resource claims (dynamic resource allocation) and the
// devices that they ask for, by device class.
//
// Devices are charged once more under the names of the extended resources that
// a device class stands for: an implicit one, and the one that the class may
// name. A pod can ask for these too, and then the scheduler makes a claim for
// it. Such a claim costs only what its pod has not paid for.
type deviceClaims struct {
	rules rules
}

// deviceClassKind is the kind of device classes.
func deviceClassKind() schema.GroupResource {
	return resourcev1.Resource("deviceclasses")
}

// Resource is the kind that deviceClaims charges.
func (deviceClaims) Resource() schema.GroupResource {
	return resourcev1.Resource("resourceclaims")
}

// Covers says whether claims are part of the amount. Any extended resource may
// be one that a device class stands for.
func (d deviceClaims) Covers(name corev1.ResourceName) bool {
	return name == countDeviceClaims || strings.HasSuffix(string(name), corev1.ResourceClaimsPerClass) ||
		d.rules.extendedClaims && d.rules.extendedRequest(Canonical(name))
}

// Constraints is nil: a claim may be created as it is.
func (deviceClaims) Constraints(runtime.Object, []corev1.ResourceName) error {
	return nil
}

// Charge says what a claim costs when there is no pod that has paid for it, and
// no device class that names an extended resource.
func (d deviceClaims) Charge(obj runtime.Object, _ time.Time) (Charge, error) {
	claim, err := as[resourcev1.ResourceClaim](obj)
	if err != nil {
		return Charge{}, err
	}
	return d.ChargeRecord(d.slimClaim(claim), func(Ref) []Record { return nil }), nil
}

// Slim keeps claims, device classes that name an extended resource, and pods
// that ask for one.
func (d deviceClaims) Slim(kind schema.GroupResource, obj runtime.Object) (Record, error) {
	switch {
	case kind == d.Resource():
		claim, err := as[resourcev1.ResourceClaim](obj)
		if err != nil {
			return Record{}, err
		}
		return d.slimClaim(claim), nil
	case !d.rules.extendedClaims:
		return Record{}, nil
	case kind == deviceClassKind():
		class, err := as[resourcev1.DeviceClass](obj)
		if err != nil {
			return Record{}, err
		}
		return slimClass(class), nil
	case kind == pods{}.Resource():
		pod, err := as[corev1.Pod](obj)
		if err != nil {
			return Record{}, err
		}
		return d.slimPod(pod)
	}
	return Record{}, nil
}

// claimFacts is what counts of a claim.
type claimFacts struct {
	name    string
	created time.Time
	own     Amounts // what the claim costs whatever else exists
	owner   owner   // the pod that it was made for; the zero value: none
}

// owner is how a claim knows its pod.
type owner struct {
	Ref

	uid types.UID
}

func (c *claimFacts) same(other facts) bool {
	o, ok := other.(*claimFacts)
	return ok && c.name == o.name && c.owner == o.owner && c.created.Equal(o.created) && c.own.equal(o.own)
}

// podFacts is what counts of a pod that asks for extended resources.
type podFacts struct {
	uid   types.UID
	claim *string   // the claim that the pod's status names, if any
	paid  Amounts   // its extended resources
	until time.Time // when it stops to pay; zero: when it changes
}

func (p *podFacts) same(other facts) bool {
	o, ok := other.(*podFacts)
	if !ok || (p.claim == nil) != (o.claim == nil) || p.claim != nil && *p.claim != *o.claim {
		return false
	}
	return p.uid == o.uid && p.until.Equal(o.until) && p.paid.equal(o.paid)
}

// classFacts is the extended resource that a device class names.
type classFacts corev1.ResourceName

func (c classFacts) same(other facts) bool {
	return c == other
}

// equal says whether two lists hold the same names and values.
func (a Amounts) equal(other Amounts) bool {
	return slices.EqualFunc(a, other, func(x, y Amount) bool { return x.Name == y.Name && x.Quantity.Cmp(y.Quantity) == 0 })
}

func slimClass(class *resourcev1.DeviceClass) Record {
	if class.Spec.ExtendedResourceName == nil || *class.Spec.ExtendedResourceName == "" {
		return Record{}
	}
	return Record{Refs: []Ref{classRef(class.Name)}, facts: classFacts(*class.Spec.ExtendedResourceName)}
}

func classRef(name string) Ref {
	return Ref{Kind: deviceClassKind(), Name: name}
}

func (d deviceClaims) slimPod(pod *corev1.Pod) (Record, error) {
	if !mentionsDomain(pod) {
		return Record{}, nil
	}
	charge, err := pods(d).Charge(pod, time.Time{})
	if err != nil {
		return Record{}, err
	}
	paid := slices.DeleteFunc(charge.Amounts, func(a Amount) bool { return !d.rules.extendedRequest(a.Name) })
	if len(paid) == 0 {
		return Record{}, nil
	}
	found := &podFacts{uid: pod.UID, paid: paid, until: charge.Until}
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		found.claim = new(status.ResourceClaimName)
	}
	return Record{Refs: []Ref{{Kind: pods{}.Resource(), Namespace: pod.Namespace, Name: pod.Name}}, facts: found}, nil
}

// mentionsDomain says whether a pod names a resource with a domain anywhere:
// few do, and only these can ask for extended resources.
func mentionsDomain(pod *corev1.Pod) bool {
	found := false
	eachList(pod, func(list corev1.ResourceList) {
		for name := range list {
			found = found || strings.Contains(string(name), "/")
		}
	})
	return found
}

func (d deviceClaims) slimClaim(claim *resourcev1.ResourceClaim) Record {
	devices := devicesOf(claim)
	amounts := Amounts{count(countDeviceClaims, 1)}
	record := Record{}
	for _, class := range slices.Sorted(maps.Keys(devices)) {
		amounts = append(amounts, Amount{Name: ofDeviceClass(class), Quantity: devices[class]})
		if d.rules.extendedClaims {
			record.DependsOn = append(record.DependsOn, classRef(class))
		}
	}
	kept := &claimFacts{name: claim.Name, created: claim.CreationTimestamp.Time, own: ordered(amounts)}
	record.facts = kept
	maker := metav1.GetControllerOfNoCopy(claim)
	if d.rules.extendedClaims && claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" &&
		maker != nil && maker.Kind == "Pod" && maker.APIVersion == "v1" {
		kept.owner = owner{Ref{Kind: pods{}.Resource(), Namespace: claim.Namespace, Name: maker.Name}, maker.UID}
		siblings := d.siblings(claim.Namespace, maker.UID)
		record.Refs = []Ref{siblings}
		record.DependsOn = append(record.DependsOn, kept.owner.Ref, siblings)
	}
	return record
}

// siblings is where claims for extended resources of one pod are found.
func (d deviceClaims) siblings(namespace string, uid types.UID) Ref {
	return Ref{Kind: d.Resource(), Namespace: namespace, Owner: uid}
}

// ofDeviceClass is the name of an amount that counts one device class.
func ofDeviceClass(class string) corev1.ResourceName {
	return corev1.ResourceName(class + corev1.ResourceClaimsPerClass)
}

// devicesOf is the most devices of each class that a claim can be given. Admin
// access costs as much as any other.
func devicesOf(claim *resourcev1.ResourceClaim) map[string]resource.Quantity {
	devices := map[string]resource.Quantity{}
	add := func(class string, n int64) {
		sum := devices[class]
		sum.Format = resource.DecimalSI
		sum.Add(*resource.NewQuantity(n, resource.DecimalSI))
		devices[class] = sum
	}
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		switch {
		case len(request.FirstAvailable) > 0:
			worst := map[string]int64{}
			for j := range request.FirstAvailable {
				option := &request.FirstAvailable[j]
				if n := devicesFor(option.AllocationMode, option.Count); n > worst[option.DeviceClassName] {
					worst[option.DeviceClassName] = n
				}
			}
			for class, n := range worst {
				add(class, n)
			}
		case request.Exactly != nil:
			add(request.Exactly.DeviceClassName, devicesFor(request.Exactly.AllocationMode, request.Exactly.Count))
		}
	}
	return devices
}

// devicesFor is the most devices that a request can be given: with All, as many
// as a claim can hold. A mode that is not known yet costs nothing.
func devicesFor(mode resourcev1.DeviceAllocationMode, exact int64) int64 {
	switch mode {
	case resourcev1.DeviceAllocationModeExactCount:
		return exact
	case resourcev1.DeviceAllocationModeAll:
		return resourcev1.AllocationResultsMaxSize
	}
	return 0
}

// ChargeRecord says what a claim costs. Its pod may have paid for part of it,
// until a time.
func (d deviceClaims) ChargeRecord(record Record, lookup Lookup) Charge {
	claim, ok := record.facts.(*claimFacts)
	if !ok {
		return Charge{}
	}
	whole := Charge{Amounts: d.amounts(claim, lookup, nil)}
	payer := claim.payer(record, lookup)
	if payer == nil {
		return whole
	}
	rest := Charge{Amounts: d.amounts(claim, lookup, payer.paid)}
	if !payer.until.IsZero() {
		rest.Until, rest.After = payer.until, &whole
	}
	return rest
}

// payer is the pod that a claim was made for, if it has paid for it: the pod's
// status names the claim, or names none and the claim is the oldest.
func (c *claimFacts) payer(record Record, lookup Lookup) *podFacts {
	if c.owner == (owner{}) {
		return nil
	}
	for _, found := range lookup(c.owner.Ref) {
		candidate, ok := found.facts.(*podFacts)
		switch {
		case !ok || candidate.uid != c.owner.uid:
		case candidate.claim != nil && *candidate.claim == c.name,
			candidate.claim == nil && c.oldest(lookup(record.Refs[0])):
			return candidate
		}
	}
	return nil
}

// oldest says whether no other of the pod's claims is older, by name where they
// are of the same age.
func (c *claimFacts) oldest(siblings []Record) bool {
	return !slices.ContainsFunc(siblings, func(r Record) bool {
		other, ok := r.facts.(*claimFacts)
		return ok && (other.created.Before(c.created) || other.created.Equal(c.created) && other.name < c.name)
	})
}

// amounts is the charge of a claim of which so much is paid for.
func (d deviceClaims) amounts(claim *claimFacts, lookup Lookup, paid Amounts) Amounts {
	var amounts Amounts
	for _, own := range claim.own {
		amounts = append(amounts, Amount{Name: own.Name, Quantity: own.Quantity.DeepCopy()})
	}
	if !d.rules.extendedClaims {
		return amounts
	}
	extended := map[corev1.ResourceName]resource.Quantity{}
	for _, own := range claim.own {
		class, found := strings.CutSuffix(string(own.Name), corev1.ResourceClaimsPerClass)
		if !found || class == "" {
			continue
		}
		extended[corev1.ResourceName(corev1.ResourceImplicitExtendedClaimsPerClass+class)] = own.Quantity.DeepCopy()
		for _, record := range lookup(classRef(class)) {
			if name, ok := record.facts.(classFacts); ok {
				sum := extended[requested(corev1.ResourceName(name))]
				sum.Format = resource.DecimalSI
				sum.Add(own.Quantity)
				extended[requested(corev1.ResourceName(name))] = sum
			}
		}
	}
	for _, part := range paid {
		if rest, found := extended[part.Name]; found {
			rest.Sub(part.Quantity)
			extended[part.Name] = rest
		}
	}
	for name, rest := range extended {
		if rest.Sign() > 0 {
			amounts = append(amounts, Amount{Name: name, Quantity: rest})
		}
	}
	return ordered(amounts)
}
