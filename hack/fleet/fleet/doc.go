// Package fleet runs a handful of real Kubernetes clusters for tests and for
// the demo.
//
// A [Fleet] lives in one directory, with a folder for each of its clusters:
//
//	DIR/NAME/cluster.json      what the cluster is and which ports it keeps
//	DIR/NAME/admin.kubeconfig  full access
//	DIR/NAME/audit.log         one line for each write that the server answered
//	DIR/NAME/PROGRAM.log       what the program said
//	DIR/NAME/PROGRAM.pid       which process runs it
//
// The provider [Local] runs etcd and kube-apiserver as plain processes, with a
// CA, a data folder and ports of their own for each cluster; the provider
// [Kind] runs nodes in Docker. Both do the same things: freeze, thaw, kill,
// restart, stop.
//
// The package keeps these promises:
//
//   - It signals only processes that it started. A process is known by its id
//     together with the time at which it started and the boot of the machine,
//     all written down by the process itself before it becomes the program.
//   - With [Options.Owned] no process outlives the one that called Up, however
//     that one ends (on Linux). Otherwise clusters stay up until Down, and an
//     Up that fails or is interrupted stops what it had started.
//   - A restart keeps data, ports and certificates, so kubeconfigs stay valid.
//   - Every method that starts or stops something returns when it is done.
package fleet
