// Package wire reads what a Kubernetes API server sends in protobuf and finds
// out what each object costs without parsing most of it.
//
// Of an object's message a table names the fields that can decide its charge.
// They are cut out; what is cut out is a message of the same kind and much the
// same for all objects of one workload. Under these bytes the charge is looked
// up. Only when it is not found are they decoded and given to the evaluator. The
// package keeps these promises:
//
//   - It never computes a charge: the counting rules are those of package
//     evaluator, and there is no second copy.
//   - Of a message that the API's own decoder accepts, it gives the charge that
//     the evaluator gives of the whole object, or an error. It may also accept a
//     message that is broken inside of a field that no charge depends on.
//   - A charge is found under all bytes that decide it, never under a hash.
//     What differs for every object, such as a claim's owner or the time of a
//     deletion, is decoded each time and is in no key.
//   - The memory of charges is bounded, whatever members send, and keeps what is
//     asked for often. The memory to read a message is in proportion to it.
//   - What it returns shares no memory with the message.
//   - It is pure: no client, no clock, no goroutine. Its errors quote nothing of
//     a message.
//
// Read it in this order: table.go (what decides), walk.go (how it is cut out),
// charges.go (what is remembered), reader.go (a message becomes an [Object]),
// object.go, and serializer.go (how client-go's reflectors come to use it).
package wire
