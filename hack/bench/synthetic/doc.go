// Package synthetic plays a fleet of member clusters in one process: API servers
// that speak the list, watch and watch-list protocol of Kubernetes 1.37 as
// kube-apiserver does, for very many pods, with little memory.
//
// A [Fleet] is made of members. Each has a port, a token and an identity of its
// own, and serves discovery, namespaces, services, ResourceQuotas with their
// status, and pods. Other kinds that the hub may ask for are there and empty.
//
// The package keeps these promises:
//
//   - A client cannot tell a member from kube-apiserver by the requests that
//     client-go's reflector makes: versions, bookmarks, continue tokens, 410,
//     protobuf and JSON, metadata alone, and gzip are the same. The tests hold
//     both to it, with one list of requests.
//   - What is not played is refused with 400, never answered wrongly.
//   - A pod is as large as real ones are, and costs some 40 bytes here: it is put
//     together when it is sent.
//   - What happens depends on the seed alone, not on time. [Fleet.Truth] says what
//     each namespace uses, counted without the hub's code.
//
// Admission is not played: a pod is made without a charge to any quota.
package synthetic
