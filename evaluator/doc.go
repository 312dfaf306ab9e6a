// Package evaluator says what one Kubernetes object costs.
//
// An object and the time go in; a [Charge] comes out: amounts by name, the
// class of scopes that the object falls under, and until when that holds. A
// [Set] holds the evaluators for one version of Kubernetes and the kinds that a
// cluster serves. A [Selector] is the scopes of one quota, compiled, and says
// which classes that quota counts. The package keeps these promises:
//
//   - For every object and every name, the amount is the one that the quota
//     controller of the Set's version of Kubernetes, with default feature
//     gates, would count.
//   - It is pure: no client, no clock, no goroutine, no state. The same input
//     gives the same charge.
//   - It never changes an object, and a charge shares no memory with it that
//     arithmetic could write to. A copied Quantity shares its big decimal.
//   - One amount has one name inside, the canonical one: requests.cpu, never
//     cpu. [Canonical] translates at the edge.
//   - A name that nobody here can measure has no kinds ([Set.Kinds] is empty).
//     It is unknown, never zero.
//
// Most charges depend on the object alone. That of a resource claim depends on
// its pod, its siblings and device classes: its evaluator is a [Dependent], and
// keeps a [Record] of each of them from which it can be charged again.
//
// Read it in this order: evaluator.go (what a charge is), pod.go and qos.go,
// service.go, claim.go and count.go, dependent.go and deviceclaim.go, then
// names.go and selector.go (what a quota may ask), set.go and skew.go
// (which rules apply to which cluster).
package evaluator
