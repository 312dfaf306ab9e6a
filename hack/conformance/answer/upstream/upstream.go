// Package upstream answers as Kubernetes does, with the evaluators of whatever
// version it is linked with.
package upstream

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetquota/fleetquota/hack/conformance/answer"
)

// Version is what differs between versions of Kubernetes in how its evaluators
// are made.
type Version struct {
	// Evaluators makes those of the special kinds. The pods' takes the time from
	// now; the others list what f lists.
	Evaluators func(f quota.ListerForResourceFunc, i informers.SharedInformerFactory, now func() time.Time) ([]quota.Evaluator, error)
	// ServiceType is the type of a service if quota may limit that; else empty.
	ServiceType func(*corev1.Service) corev1.ServiceType
	// Valid says whether validation lets a quota pass.
	Valid func(*corev1.ResourceQuota) (bool, error)
	// Internal is an object in the form that the API server uses inside.
	Internal func(runtime.Object) (runtime.Object, error)
}

// Main answers on standard output about the Worlds on standard input, until they
// end. The arguments are feature gates to set, NAME=BOOL each.
func Main(version Version) {
	for _, gate := range os.Args[1:] {
		if err := feature.DefaultMutableFeatureGate.Set(gate); err != nil {
			fail(err)
		}
	}
	if err := Serve(os.Stdin, os.Stdout, version); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Serve reads one World per line until that ends, and writes each answer as one
// JSON string per line.
func Serve(in io.Reader, out io.Writer, version Version) error {
	side, err := newSide(version)
	if err != nil {
		return err
	}
	lines := bufio.NewReaderSize(in, 1<<20)
	buffered := bufio.NewWriterSize(out, 1<<20)
	encoder := json.NewEncoder(buffered)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return buffered.Flush()
		}
		if err != nil {
			return err
		}
		text, err := side.answer(line)
		if err != nil {
			return err
		}
		if err := encoder.Encode(text); err != nil {
			return err
		}
		if lines.Buffered() == 0 { // who asks waits for the answer
			if err := buffered.Flush(); err != nil {
				return err
			}
		}
	}
}

// side is Kubernetes' evaluators and the World that they look at.
type side struct {
	version    Version
	world      *answer.World
	informers  informers.SharedInformerFactory
	classes    []cache.ResourceEventHandler // who wants to know of device classes
	evaluators map[schema.GroupResource]quota.Evaluator
	registry   quota.Registry
}

func newSide(version Version) (*side, error) {
	s := &side{version: version, evaluators: map[schema.GroupResource]quota.Evaluator{}}
	s.informers = idle(&s.classes)
	var special []quota.Evaluator
	for range 2 { // as in the API server, where two users share the informers
		made, err := version.Evaluators(s.lister, s.informers, func() time.Time { return s.world.Now })
		if err != nil {
			return nil, err
		}
		special = made
	}
	for _, evaluator := range special {
		s.evaluators[evaluator.GroupResource()] = evaluator
	}
	for _, kind := range answer.Counted() {
		if s.evaluators[kind] == nil {
			list := generic.ListResourceUsingListerFunc(s.lister, kind.WithVersion("v1"))
			s.evaluators[kind] = generic.NewObjectCountEvaluator(kind, list, "")
		}
	}
	var all []quota.Evaluator
	for _, evaluator := range s.evaluators {
		all = append(all, evaluator)
	}
	s.registry = generic.NewRegistry(all)
	return s, nil
}

// answer answers one World. Each question begins with a fresh copy of it: sums
// may change the objects that they read.
func (s *side) answer(line []byte) (string, error) {
	if err := s.enter(line); err != nil {
		return "", err
	}
	defer s.leave()
	var text answer.Text
	for _, kind := range answer.Special() {
		objects := s.world.Objects(kind)
		for i, object := range objects {
			if err := s.object(&text, kind, i, object); err != nil {
				return "", err
			}
			s.admission(&text, kind, i, object, answer.Before(objects, i))
			if service, ok := object.(*corev1.Service); ok {
				text.Type(i, s.version.ServiceType(service))
			}
		}
		s.foreign(&text, kind)
	}
	for i, q := range s.world.Quotas {
		valid, err := s.version.Valid(q)
		if err != nil {
			return "", err
		}
		if !valid {
			text.Refused(i)
			continue
		}
		used, err := quota.CalculateUsage(answer.Namespace, q.Spec.Scopes, q.Spec.Hard, s.registry, q.Spec.ScopeSelector)
		text.Sum(i, used, err)
	}
	return text.String(), nil
}

// internal checks that the internal form of an object costs the same, as
// admission sees it. Where device classes compete for a name, upstream takes one
// of them by chance each time: then it must cost the same some of the time.
func (s *side) internal(kind schema.GroupResource, i int, object runtime.Object, used corev1.ResourceList) error {
	var first, again answer.Text
	first.Usage(kind, i, used, nil)
	const tries = 50
	for range tries {
		internal, err := s.version.Internal(object.DeepCopyObject())
		if err != nil {
			return err
		}
		inside, err := s.evaluators[kind].Usage(internal)
		again = answer.Text{}
		again.Usage(kind, i, inside, err)
		if again.String() == first.String() {
			return nil
		}
	}
	return fmt.Errorf("the internal form costs otherwise: %s, not %s", again.String(), first.String())
}

// object answers for one object by itself.
func (s *side) object(text *answer.Text, kind schema.GroupResource, i int, object runtime.Object) error {
	evaluator := s.evaluators[kind]
	used, err := evaluator.Usage(object.DeepCopyObject())
	text.Usage(kind, i, used, err)

	if err := s.internal(kind, i, object, used); err != nil {
		return err
	}
	text.Open(kind, i, evaluator.Constraints(s.world.Required, object.DeepCopyObject()))
	for j, q := range s.world.Quotas {
		if valid, err := s.version.Valid(q); err != nil || !valid {
			continue
		}
		var fits []bool
		var all []corev1.ScopedResourceSelectorRequirement
		for _, requirement := range answer.Requirements(&q.Spec) {
			matched, err := evaluator.MatchingScopes(object, []corev1.ScopedResourceSelectorRequirement{requirement})
			if err != nil {
				return err
			}
			fits = append(fits, len(matched) > 0)
			all = append(all, matched...)
		}
		text.Scopes(kind, i, j, fits)
		uncovered, err := evaluator.UncoveredQuotaScopes(answer.Requirements(&q.Spec), all)
		if err != nil {
			return err
		}
		text.Uncovered(kind, i, j, uncovered)
		if kind.Resource == "resourceclaims" {
			continue // whether a name may concern claims depends on what else exists; the sums show it
		}
		asked := q.DeepCopy()
		asked.Status.Hard = asked.Spec.Hard
		matches, err := evaluator.Matches(asked, object)
		if err != nil {
			return err
		}
		text.Matches(kind, i, j, matches)
	}
	return nil
}

// admission answers which requests for an object are charged.
func (s *side) admission(text *answer.Text, kind schema.GroupResource, i int, object, before runtime.Object) {
	var charged []answer.Request
	for _, request := range answer.Requests() {
		attributes := admission.NewAttributesRecord(object, before, schema.GroupVersionKind{}, answer.Namespace, "", kind.WithVersion("v1"),
			request.Subresource, admission.Operation(request.Verb), nil, false, nil)
		if s.evaluators[kind].Handles(attributes) {
			charged = append(charged, request)
		}
	}
	text.Admitted(kind, i, charged)
}

// foreign answers whether objects of another kind are refused everywhere, and
// selectors that cannot be.
func (s *side) foreign(text *answer.Text, kind schema.GroupResource) {
	evaluator, other := s.evaluators[kind], &corev1.Namespace{}
	_, err := evaluator.Usage(other)
	refused := err != nil
	if kind.Resource == "pods" {
		refused = refused && evaluator.Constraints(nil, other) != nil
	}
	if kind.Resource == "pods" || kind.Resource == "persistentvolumeclaims" {
		refused = refused && s.refusesScopes(kind, other) && !s.chargesUpdates(kind, other)
	}
	text.Foreign(kind, refused)
}

// refusesScopes says whether the scopes of another object cannot be told, nor
// what fits a selector that cannot be.
func (s *side) refusesScopes(kind schema.GroupResource, other runtime.Object) bool {
	for _, scope := range []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeVolumeAttributesClass} {
		if _, err := s.evaluators[kind].MatchingScopes(other, []corev1.ScopedResourceSelectorRequirement{{ScopeName: scope}}); err == nil {
			return false
		}
	}
	_, err := s.evaluators[kind].MatchingScopes(s.bad(kind))
	return err != nil
}

// chargesUpdates says whether admission charges updates for which it must look
// into the object, although it is of another kind.
func (s *side) chargesUpdates(kind schema.GroupResource, other runtime.Object) bool {
	subresource := map[string]string{"pods": "", "persistentvolumeclaims": "status"}[kind.Resource]
	return s.evaluators[kind].Handles(admission.NewAttributesRecord(other, other, schema.GroupVersionKind{}, answer.Namespace, "",
		kind.WithVersion("v1"), subresource, admission.Update, nil, false, nil))
}

// bad is an object that would be in a scope, and a selector of that scope which
// cannot be.
func (*side) bad(kind schema.GroupResource) (runtime.Object, []corev1.ScopedResourceSelectorRequirement) {
	if kind.Resource == "pods" {
		return &corev1.Pod{}, []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: "Bad"}}
	}
	return &corev1.PersistentVolumeClaim{}, []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopeVolumeAttributesClass, Operator: "Bad"}}
}

// enter makes a World the one that the evaluators look at.
func (s *side) enter(line []byte) error {
	s.world = &answer.World{}
	if err := json.Unmarshal(line, s.world); err != nil {
		return err
	}
	pods, claims := s.informers.Core().V1().Pods().Informer().GetIndexer(), s.informers.Resource().V1().ResourceClaims().Informer().GetIndexer()
	for _, p := range s.world.Pods {
		// A copy: each time that a pod is summed for a claim, its overhead is added
		// to pod-level resources that are big decimals, in the pod itself.
		if err := pods.Add(p.DeepCopy()); err != nil {
			return err
		}
	}
	for _, c := range s.world.DeviceClaims {
		if err := claims.Add(c); err != nil {
			return err
		}
	}
	for _, handler := range s.classes {
		for _, class := range s.world.DeviceClasses {
			handler.OnAdd(class, true)
		}
	}
	return nil
}

// leave forgets it.
func (s *side) leave() {
	for _, indexer := range []cache.Indexer{
		s.informers.Core().V1().Pods().Informer().GetIndexer(), s.informers.Resource().V1().ResourceClaims().Informer().GetIndexer(),
	} {
		for _, object := range indexer.List() {
			if err := indexer.Delete(object); err != nil {
				panic(err) // what is in the store can be deleted from it
			}
		}
	}
	for _, handler := range s.classes {
		for _, class := range s.world.DeviceClasses {
			handler.OnDelete(class)
		}
	}
}

// lister lists a kind of the World.
func (s *side) lister(gvr schema.GroupVersionResource) (cache.GenericLister, error) {
	kind := gvr.GroupResource()
	if slices.Contains(answer.Special(), kind) {
		return lister(func() []runtime.Object { return s.world.Objects(kind) }), nil
	}
	return lister(func() []runtime.Object {
		objects := make([]runtime.Object, s.world.Counts[kind.String()])
		for i := range objects {
			objects[i] = &corev1.ConfigMap{} // nothing in it is read
		}
		return objects
	}), nil
}

// lister is a list as Kubernetes' evaluators ask for it. All is in one namespace.
type lister func() []runtime.Object

// List copies, so that a sum which changes an object does so once.
func (l lister) List(labels.Selector) ([]runtime.Object, error) {
	var copies []runtime.Object
	for _, object := range l() {
		copies = append(copies, object.DeepCopyObject())
	}
	return copies, nil
}

// Get is not asked for.
func (lister) Get(name string) (runtime.Object, error) {
	return nil, fmt.Errorf("%s: only lists are expected", name)
}

// ByNamespace is the same list.
func (l lister) ByNamespace(string) cache.GenericNamespaceLister {
	return l
}
