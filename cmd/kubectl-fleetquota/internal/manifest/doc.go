// Package manifest reads Kubernetes objects from files, as they would be stored.
//
// Paths go in, [Object]s come out, each with the file and line that it stands
// at, and the defaults of the API that decide what an object costs filled in.
// Nothing is asked of any cluster. The package keeps these promises:
//
//   - What cannot be read is a [Problem] with its place, and never silently
//     left out; everything else is read all the same.
//   - A kind that is not built in is an object too: its plural is that of its
//     CustomResourceDefinition where that is among the files, else a guess.
//   - [Input.Expand] makes what controllers would: pods of workloads, and
//     claims of pods. It never replaces what the files hold.
//
// Read it in this order: read.go (the whole way), files.go and documents.go
// (from paths to documents), decode.go and blame.go (to objects, or to the
// line at fault), kinds.go, defaults.go and admission.go (as it would be
// stored), expand.go, claims.go and controlled.go.
package manifest
