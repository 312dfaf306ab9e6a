// Package clusters says which member clusters exist and keeps one living
// connection to each.
//
// A [Source] names the members, as [Secrets] does from labelled kubeconfig
// Secrets of the hub. [Serve] runs one engagement of the [Host] per member and
// tells it what is known of the connection. The package knows nothing of quota.
// It keeps these promises:
//
//   - An engagement is one blocking call. The next of the same member begins
//     only when the call before has returned, and [Host.Gone] follows when
//     nothing of the member is left: no goroutine, no connection.
//   - Members do not wait for each other. Each has its own goroutine, transport,
//     rate limiter and back-off.
//   - One cluster is engaged under one name at a time, whatever it is called:
//     its identity is the UID of its namespace kube-system.
//   - Silence is noticed by the clock alone: a member that has not answered for
//     [Options.StaleAfter] is Stale, for [Options.UnreachableAfter] Unreachable.
//   - A kubeconfig runs nothing and reads no file. What is used is rebuilt from
//     an allow-list, and what is refused is refused with a reason whose text
//     holds no byte of the Secret.
//   - A token never leaves for another host than the member's server.
//
// Read on at [Serve], then member.go (the loop of one member), session.go (one
// connection), link.go (the transport) and kubeconfig.go (the allow-list).
package clusters
