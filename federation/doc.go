// Package federation does the arithmetic of one quota shared by many clusters.
//
// Charges come in from each member, a sum per quota goes out. The package does
// no I/O, starts no goroutine and never asks for the time. It keeps these
// promises:
//
//   - A sum is exact, and after any sequence of changes equal to a fresh
//     recount of the objects that are left.
//   - A change costs the same in a namespace with 50,000 objects as in one
//     with five; the use of a quota costs the scope classes of its namespace,
//     not the objects.
//   - Unknown is not zero. A number that nobody has counted is absent from
//     every list and named; one that may be out of date is marked.
//   - A page is owned by its handle. What comes late through the handle of an
//     engagement that has ended changes nothing.
//
// In reading order: [Ledger] and [Book] hold every charge of every member;
// [Ledger.Usage] answers a [Question] with each member's [Part] and their sum;
// [Usage.Recall] fills in what an earlier run of the hub had known; [Report]
// turns it into the status of a FleetQuota. [Division] divides a limit among the
// members, in whole [Unit]s.
package federation
