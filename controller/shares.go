package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// shares is the local quotas of one member that carry a share of a FleetQuota.
// What is watched only says when to look: a pass rests on what it has read.
type shares struct {
	informer[*corev1.ResourceQuota]

	engagement *engagement
	rooms      rooms
}

func newShares(e *engagement) *shares {
	api := e.conn.Kubernetes.CoreV1().ResourceQuotas(metav1.NamespaceAll)
	const ours = v1alpha1.LabelShare + "=" + marked
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = ours
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = ours
			w, err := api.Watch(ctx, o)
			if err == nil {
				e.hub.enforce.heard(e.name())
			}
			return w, clusters.Hasty(err)
		},
	}
	return &shares{informer: newInformer(source, &corev1.ResourceQuota{}, 0), engagement: e}
}

const (
	marked         = "true"
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "fleetquota"
)

// run watches until ctx ends, from when the first FleetQuota is divided.
func (s *shares) run(ctx context.Context) error {
	enforce := s.engagement.hub.enforce
	select {
	case <-ctx.Done():
		return nil
	case <-enforce.needed:
	}
	look := func(obj any) {
		enforce.heardOf(keyOf(obj), s.engagement.name())
		enforce.queue.Add(keyOf(obj))
	}
	_, err := s.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: look,
		DeleteFunc: func(obj any) {
			s.rooms.forget(keyOf(obj))
			look(obj)
		},
		UpdateFunc: func(before, now any) {
			was, is := of[*corev1.ResourceQuota](before), of[*corev1.ResourceQuota](now)
			s.rooms.grew(keyOf(now), was.Status.Used, is.Status.Used, time.Now())
			look(now)
		},
	})
	if err != nil {
		return fmt.Errorf("watch the shares of FleetQuotas: %w", err)
	}
	err = s.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		klog.FromContext(ctx).V(2).Info("Cannot list or watch shares", "err", clusters.Explain(err))
	})
	if err != nil {
		return fmt.Errorf("watch the shares of FleetQuotas: %w", err)
	}
	var group sync.WaitGroup
	var silent klog.Logger // client-go's informer logs what the member says
	group.Go(func() { s.RunWithContext(klog.NewContext(ctx, silent)) })
	defer group.Wait()
	if cache.WaitForNamedCacheSyncWithContext(ctx, s.HasSynced) {
		enforce.queueAll()
	}
	<-ctx.Done()
	return nil
}

// localQuota is one as it was read, for a FleetQuota of its name. Nil: there is
// none.
type localQuota struct {
	*corev1.ResourceQuota

	noNamespace bool
	ending      bool // there is none, and its namespace is being deleted
}

// read reads a quota from the member itself.
func (s *shares) read(ctx context.Context, key types.NamespacedName) (localQuota, error) {
	api := s.engagement.conn.Kubernetes.CoreV1()
	found, err := api.ResourceQuotas(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		bound(found)
		return localQuota{ResourceQuota: found}, nil
	case !apierrors.IsNotFound(err):
		return localQuota{}, fmt.Errorf("read ResourceQuota %s: %w", key, clusters.Explain(err))
	}
	namespace, err := api.Namespaces().Get(ctx, key.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return localQuota{noNamespace: true}, nil
	case err != nil:
		return localQuota{}, fmt.Errorf("read namespace %s: %w", key.Namespace, clusters.Explain(err))
	}
	return localQuota{ending: namespace.DeletionTimestamp != nil}, nil
}

// seen is what a pass looks at. A nil FleetQuota is one that is gone.
func (s *shares) seen(q localQuota, of *v1alpha1.FleetQuota) federation.Seen {
	cluster := s.engagement.conn.UID
	if q.ResourceQuota == nil {
		return federation.Seen{Cluster: cluster, NoNamespace: q.noNamespace, Ending: q.ending}
	}
	return federation.Seen{
		Cluster: cluster,
		Present: true, UID: q.UID, Mark: q.Annotations[v1alpha1.AnnotationGrant], Hidden: q.Labels[v1alpha1.LabelShare] != marked,
		OtherScopes: of != nil && !alikeScopes(of.Spec, q.Spec),
		Hard:        q.Spec.Hard, Limit: q.Status.Hard, Used: q.Status.Used,
	}
}

func alikeScopes(global v1alpha1.FleetQuotaSpec, local corev1.ResourceQuotaSpec) bool {
	ordered := func(scopes []corev1.ResourceQuotaScope) []corev1.ResourceQuotaScope {
		return slices.Sorted(slices.Values(scopes))
	}
	return slices.Equal(ordered(global.Scopes), ordered(local.Scopes)) &&
		equality.Semantic.DeepEqual(selectorOf(global.ScopeSelector), selectorOf(local.ScopeSelector))
}

// selectorOf is what a selector asks for; one that asks for nothing is none.
func selectorOf(s *corev1.ScopeSelector) []corev1.ScopedResourceSelectorRequirement {
	if s == nil {
		return nil
	}
	return s.MatchExpressions
}

// send does one write. Whether it has arrived is for the next pass to see.
func (s *shares) send(ctx context.Context, key types.NamespacedName, w federation.Write, was localQuota, of *v1alpha1.FleetQuota) error {
	api := s.engagement.conn.Kubernetes.CoreV1().ResourceQuotas(key.Namespace)
	var err error
	switch w.Kind {
	case federation.WriteCreate:
		_, err = api.Create(ctx, made(key, w, of), metav1.CreateOptions{FieldManager: fieldManager})
	case federation.WriteDelete:
		version := was.ResourceVersion // else one that is late could delete what the member was given since
		err = api.Delete(ctx, key.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &w.UID, ResourceVersion: &version}})
	case federation.WritePatch, federation.WriteRelease:
		var body []byte
		if body, err = json.Marshal(patch(w, was, of)); err == nil {
			_, err = api.Patch(ctx, key.Name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
		}
	}
	s.engagement.hub.metrics.wrote(s.engagement.name(), "share", err)
	if w.Kind != federation.WriteCreate && apierrors.IsInvalid(err) && s.overtaken(ctx, key, w) {
		return errOvertaken
	}
	if err != nil {
		return fmt.Errorf("write ResourceQuota %s: %w", key, clusters.Explain(err))
	}
	klog.FromContext(ctx).V(2).Info("Wrote share", "quota", key, "member", s.engagement.name(), "hard", w.Set)
	return nil
}

// errOvertaken says that the quota has changed since it was read: the next pass
// reads it again.
var errOvertaken = errors.New("others have written in between")

// overtaken says whether a patch was refused because the quota bears another mark
// by now. Nothing else in the answer tells that from a quota that is refused.
func (s *shares) overtaken(ctx context.Context, key types.NamespacedName, w federation.Write) bool {
	now, err := s.read(ctx, key)
	if err != nil {
		return false
	}
	return now.ResourceQuota == nil || now.UID != w.UID || now.Annotations[v1alpha1.AnnotationGrant] != w.Test
}

// made is the quota that is created for a FleetQuota.
func made(key types.NamespacedName, w federation.Write, of *v1alpha1.FleetQuota) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels:      map[string]string{v1alpha1.LabelShare: marked, labelManagedBy: managedBy},
			Annotations: map[string]string{v1alpha1.AnnotationGrant: w.Mark, v1alpha1.AnnotationLimit: limitText(of)},
		},
		Spec: corev1.ResourceQuotaSpec{Hard: w.Set, Scopes: of.Spec.Scopes, ScopeSelector: of.Spec.ScopeSelector},
	}
}

// limitText tells a user who is denied where the limit comes from.
func limitText(of *v1alpha1.FleetQuota) string {
	var parts []string
	for name, limit := range of.Spec.Hard {
		parts = append(parts, string(name)+"="+limit.String())
	}
	slices.Sort(parts)
	return fmt.Sprintf("a part of FleetQuota %s/%s at the hub: %s over all clusters", of.Namespace, of.Name, strings.Join(parts, ", "))
}

// operation is one of a JSON Patch (RFC 6902). A test of null matches what is
// absent from a map that is there.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch is a write as a JSON Patch on the quota as it was read. It is refused if
// the quota is another one or its annotation has changed since.
func patch(w federation.Write, was localQuota, of *v1alpha1.FleetQuota) []operation {
	const annotations, labels, hard = "/metadata/annotations", "/metadata/labels", "/spec/hard"
	ops := []operation{{"test", "/metadata/uid", w.UID}}
	switch {
	case was.Annotations == nil:
		ops = append(ops, operation{"test", annotations, nil}, operation{"add", annotations, map[string]string{}})
	case w.Test == "":
		ops = append(ops, operation{"test", at(annotations, v1alpha1.AnnotationGrant), nil})
	default:
		ops = append(ops, operation{"test", at(annotations, v1alpha1.AnnotationGrant), w.Test})
	}
	if w.Kind == federation.WriteRelease {
		return append(ops, unmark(was)...)
	}
	if was.Labels == nil {
		ops = append(ops, operation{"test", labels, nil}, operation{"add", labels, map[string]string{}})
	}
	if was.Spec.Hard == nil {
		ops = append(ops, operation{"test", hard, nil}, operation{"add", hard, map[string]string{}})
	}
	ops = append(ops,
		operation{"add", at(labels, v1alpha1.LabelShare), marked},
		operation{"add", at(annotations, v1alpha1.AnnotationGrant), w.Mark},
		operation{"add", at(annotations, v1alpha1.AnnotationLimit), limitText(of)},
	)
	for name, quantity := range w.Set {
		ops = append(ops, operation{"add", at(hard, string(name)), quantity})
	}
	for _, name := range w.Remove {
		ops = append(ops, operation{"remove", at(hard, string(name)), nil})
	}
	return ops
}

// unmark removes what marks a quota as ours.
func unmark(was localQuota) []operation {
	var ops []operation
	remove := func(parent string, from map[string]string, name, value string) {
		if have, there := from[name]; there && (value == "" || have == value) {
			ops = append(ops, operation{"remove", at(parent, name), nil})
		}
	}
	remove("/metadata/annotations", was.Annotations, v1alpha1.AnnotationGrant, "")
	remove("/metadata/annotations", was.Annotations, v1alpha1.AnnotationLimit, "")
	remove("/metadata/labels", was.Labels, v1alpha1.LabelShare, "")
	remove("/metadata/labels", was.Labels, labelManagedBy, managedBy)
	return ops
}

// at is the JSON Pointer (RFC 6901) to a key of a map.
func at(parent, key string) string {
	return parent + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// makeNamespace makes the namespace of a FleetQuota in the member.
func (s *shares) makeNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := s.engagement.conn.Kubernetes.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, clusters.Explain(err))
	}
	return nil
}

// answerWithin is how long a pass waits for one member. What was sent and not
// answered by then may still arrive.
const answerWithin = 2 * time.Second
