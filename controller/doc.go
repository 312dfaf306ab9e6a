// Package controller holds the loops of the hub. It is the only place where
// connections ([clusters]) and arithmetic ([federation]) meet.
//
// Usage flows one way:
//
//	member watch event -> observe -> evaluator -> ledger -> report -> FleetQuota.status (hub)
//	                                                 \----> local  -> ResourceQuota.status (member)
//
// In reading order: [Run] starts the loops; fleet.go is told of members and
// writes their FleetMembers; member.go is all that runs for one member while
// it is engaged; observe.go keeps its page of the ledger, arrival.go reads the
// lists for that and gate.go says when; local.go is its quota
// controller and answer.go decides whether that is needed; report.go writes
// the status of FleetQuotas.
//
// Guarantees:
//
//   - A member's trouble stays with it: everything that waits for a member
//     runs in that member's own goroutines.
//   - A status is always the sum of the ledger, never the last one adjusted.
//   - Nothing is written when nothing changed.
//   - When Run returns, nothing that it started is left.
package controller
