package manifest

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options says how to read.
type Options struct {
	In        io.Reader // what the path "-" reads
	Namespace string    // of objects that name none; default "default"
	Rules     string    // whose defaults apply, such as "1.37"; default the newest
}

// Place is where in the input something stands.
type Place struct {
	File string
	Line int // from 1; 0: the file as a whole
}

// String is FILE:LINE.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Problem is what is wrong with a part of the input.
type Problem struct {
	Place

	Text string
}

// String is FILE:LINE: TEXT.
func (p Problem) String() string {
	return p.Place.String() + ": " + p.Text
}

// Object is one object as it would be stored, or several that differ by name
// alone.
type Object struct {
	Kind      schema.GroupVersionKind
	Resource  schema.GroupResource
	Namespace string // empty: the object is in none
	Names     []string
	Value     runtime.Object // of the type of its kind where that is built in, else unstructured
	Guess     bool           // Resource is guessed from the kind
	From      string         // what the object was made of, such as "Deployment team-a/web"; empty: it is in the files

	item item
}

// String is the object in words, such as "Pod team-a/web".
func (o *Object) String() string {
	if o.From != "" {
		return fmt.Sprintf("%s of %s", o.Kind.Kind, o.From)
	}
	if o.Namespace == "" {
		return o.Kind.Kind + " " + o.Names[0]
	}
	return fmt.Sprintf("%s %s/%s", o.Kind.Kind, o.Namespace, o.Names[0])
}

// Place is where the object, or what it was made of, begins.
func (o *Object) Place() Place {
	return o.item.place()
}

// Problem says what is wrong with the object.
func (o *Object) Problem(text string) Problem {
	return Problem{Place: o.Place(), Text: o.String() + ": " + text}
}

// Input is what the files hold.
type Input struct {
	Objects []*Object // in the order in which they were read
	Bad     []Problem // of what could not be read
	Notes   []Problem // of what was read, and may not be meant

	options   Options
	kinds     kinds
	admission admission
	order     map[string]int // file -> its place among the files
}

// Read reads all objects of files, of directories with all below them, and of
// standard input for "-".
func Read(paths []string, o Options) *Input {
	o.Namespace = cmp.Or(o.Namespace, metav1.NamespaceDefault)
	in := &Input{
		options:   o,
		kinds:     newKinds(),
		admission: admission{ranges: map[string][]*corev1.LimitRange{}, overhead: map[string]corev1.ResourceList{}},
		order:     map[string]int{},
	}
	var found []*Object
	for _, f := range in.files(paths) {
		for _, d := range in.documents(f) {
			for _, i := range in.items(d) {
				if object := in.decode(i); object != nil {
					found = append(found, object)
				}
			}
		}
	}
	for _, object := range found {
		in.kinds.learn(object)
	}
	for _, object := range found {
		in.settle(object)
		in.admission.learn(object)
	}
	for _, object := range found {
		in.store(object.Value, object.Namespace)
	}
	in.keepLast()
	in.Bad, in.Notes = in.inOrder(in.Bad), in.inOrder(in.Notes)
	return in
}

// inOrder puts problems in the order of the text that they are about.
func (in *Input) inOrder(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(in.order[a.File], in.order[b.File]), cmp.Compare(a.Line, b.Line))
	})
	return problems
}

// settle finds an object's place, once all kinds are known.
func (in *Input) settle(o *Object) {
	namespaced, known := in.kinds.namespaced(o.Kind.GroupKind())
	o.Resource, o.Guess = in.kinds.resource(o.Kind.GroupKind()), !known
	switch {
	case !namespaced:
		o.Namespace = ""
	case o.Namespace == "":
		o.Namespace = in.options.Namespace
		if !known {
			in.Notes = append(in.Notes, o.Problem("the kind is not known here: it is counted in this namespace; "+
				"add its CustomResourceDefinition to the files if it belongs to no namespace"))
		}
	}
	if accessor, ok := o.Value.(metav1.Object); ok {
		accessor.SetNamespace(o.Namespace)
	}
	in.Objects = append(in.Objects, o)
}

// key is under which name an object would be stored.
type key struct {
	resource        schema.GroupResource
	namespace, name string
}

// keepLast keeps the last of objects that have the same name, as applying them
// in order would.
func (in *Input) keepLast() {
	last := map[key]*Object{}
	for _, o := range in.Objects {
		k := key{o.Resource, o.Namespace, o.Names[0]}
		if before := last[k]; before != nil {
			in.Notes = append(in.Notes, o.Problem("replaces the one of "+before.Place().String()))
		}
		last[k] = o
	}
	in.Objects = slices.DeleteFunc(in.Objects, func(o *Object) bool {
		return last[key{o.Resource, o.Namespace, o.Names[0]}] != o
	})
}

// Served lists the kinds that a cluster with these objects serves: those that
// are built in, those of the objects, and those that a CustomResourceDefinition
// among them defines.
func (in *Input) Served() []schema.GroupResource {
	served := in.kinds.served()
	for _, o := range in.Objects {
		if o.Namespace != "" {
			served = append(served, o.Resource)
		}
	}
	return served
}

// Guesses says whether it is a guess which resources of a group the files hold.
func (in *Input) Guesses(group string) bool {
	return slices.ContainsFunc(in.Objects, func(o *Object) bool { return o.Guess && o.Resource.Group == group })
}

// bad notes what could not be read.
func (in *Input) bad(at Place, format string, args ...any) {
	in.rank(at.File)
	in.Bad = append(in.Bad, Problem{Place: at, Text: fmt.Sprintf(format, args...)})
}

// rank notes that a file comes after those noted before.
func (in *Input) rank(name string) {
	if _, known := in.order[name]; !known {
		in.order[name] = len(in.order)
	}
}

// note notes what may not be meant.
func (in *Input) note(at Place, format string, args ...any) {
	in.Notes = append(in.Notes, Problem{Place: at, Text: fmt.Sprintf(format, args...)})
}
