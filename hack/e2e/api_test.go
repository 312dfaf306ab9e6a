package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

var (
	fleetQuotas  = v1alpha1.SchemeGroupVersion.WithResource("fleetquotas")
	fleetMembers = v1alpha1.SchemeGroupVersion.WithResource("fleetmembers")
)

// write creates or, when it exists, replaces the FleetQuota with a spec, as
// somebody does who writes YAML. One that selects no members selects none here,
// where others have theirs.
func (x *tenant) write(ctx context.Context, name, spec string) error {
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte("spec: "+spec), &fields); err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: fields}
	if _, selects, _ := unstructured.NestedFieldNoCopy(fields, "spec", "clusterSelector"); !selects {
		if err := unstructured.SetNestedStringMap(fields, map[string]string{"region": "nowhere"}, "spec", "clusterSelector", "matchLabels"); err != nil {
			return err
		}
	}
	u.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("FleetQuota"))
	u.SetName(name)
	api := x.Hub.Dynamic.Resource(fleetQuotas).Namespace(x.namespace)
	_, err := api.Create(ctx, u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	have, err := api.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	u.SetResourceVersion(have.GetResourceVersion())
	_, err = api.Update(ctx, u, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

// The API server refuses what ResourceQuota would refuse, with a message that
// names the field and the key.
func TestSpecsThatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	for name, test := range map[string]struct {
		spec string
		says []string // all of them
	}{
		"an unknown name":              {`{hard: {pods: "1", pod: "1"}}`, []string{"spec.hard", "unknown resource name", "pod;"}},
		"an unknown name in requests":  {`{hard: {requests.gpu: "1"}}`, []string{"spec.hard", "requests.gpu"}},
		"an unknown name in limits":    {`{hard: {limits.pods: "1"}}`, []string{"spec.hard", "limits.pods"}},
		"a negative limit":             {`{hard: {pods: "1", requests.cpu: "-1"}}`, []string{"spec.hard", "negative limit", "requests.cpu"}},
		"a negative number":            {`{hard: {pods: -1}}`, []string{"spec.hard", "pods"}},
		"a fraction of a pod":          {`{hard: {pods: "1500m"}}`, []string{"spec.hard", "pods", "whole number"}},
		"a fraction of an object":      {`{hard: {count/deployments.apps: "0.5"}}`, []string{"spec.hard", "count/deployments.apps", "whole number"}},
		"no quantity at all":           {`{hard: {pods: "many"}}`, []string{"spec.hard", "pods"}},
		"a malformed name":             {`{hard: {"count/Deployments apps": "1"}}`, []string{"spec.hard", "malformed"}},
		"two limits for one amount":    {`{hard: {cpu: "1", requests.cpu: "2"}}`, []string{"spec.hard", "cpu and requests.cpu"}},
		"an absurd exponent":           {`{hard: {pods: "1e9999999"}}`, []string{"spec.hard", "pods", "two digits"}},
		"... that takes hours to read": {`{hard: {cpu: "1e-999999999", requests.cpu: "1e999999999"}}`, []string{"spec.hard", "cpu", "two digits"}},
		"... of a member":              {`{distribution: {mode: Static, members: [{cluster: a, hard: {pods: "1e9999999"}}]}}`, []string{"spec.distribution.members", "pods"}},
		"a huge quantity":              {`{hard: {pods: "` + strings.Repeat("1", 64) + `"}}`, []string{"spec.hard", "pods"}},
		"an unknown scope":             {`{scopes: [Idle]}`, []string{"spec.scopes", "Idle"}},
		"scopes in conflict":           {`{scopes: [Terminating, NotTerminating]}`, []string{"spec.scopes", "conflicting"}},
		"other scopes in conflict":     {`{scopes: [BestEffort, NotBestEffort]}`, []string{"spec.scopes", "conflicting"}},
		"an unknown scope to select":   {`{scopeSelector: {matchExpressions: [{scopeName: Idle, operator: Exists}]}}`, []string{"spec.scopeSelector", "scopeName"}},
		"an unknown operator":          {`{scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Near, values: [a]}]}}`, []string{"spec.scopeSelector", "operator"}},
		"values of a scope with none":  {`{scopeSelector: {matchExpressions: [{scopeName: Terminating, operator: In, values: [a]}]}}`, []string{"spec.scopeSelector", "Exists"}},
		"In without values":            {`{scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In}]}}`, []string{"spec.scopeSelector", "need values"}},
		"Exists with values":           {`{scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists, values: [a]}]}}`, []string{"spec.scopeSelector", "take none"}},
		"an unknown stalePolicy":       {`{stalePolicy: Forget}`, []string{"spec.stalePolicy", "Forget"}},
		"an unknown mode":              {`{distribution: {mode: Random}}`, []string{"spec.distribution.mode", "Random"}},
		"no mode":                      {`{distribution: {paused: true}}`, []string{"spec.distribution.mode"}},
		"a negative weight":            {`{distribution: {mode: Weighted, members: [{cluster: a, weight: -1}]}}`, []string{"weight"}},
		"one member twice":             {`{distribution: {mode: Weighted, members: [{cluster: a}, {cluster: a}]}}`, []string{"spec.distribution.members"}},
		"a member without a name":      {`{distribution: {mode: Weighted, members: [{cluster: ""}]}}`, []string{"spec.distribution.members", "cluster"}},
		"a field that does not exist":  {`{hards: {pods: "1"}}`, []string{"hards"}},
		"more names than fit a status": {`{hard: {` + manyNames(65) + `}}`, []string{"spec.hard", "64"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := x.write(t.Context(), "refused", test.spec)
			if err == nil {
				t.Fatalf("%s is accepted", test.spec)
			}
			for _, words := range test.says {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("the message does not say %q: %v", words, err)
				}
			}
		})
	}
}

func manyNames(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf(`count/a%d.example.com: "1"`, i))
	}
	return strings.Join(names, ", ")
}

// What users of ResourceQuota write is accepted.
func TestSpecsThatTheAPIAccepts(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	for name, spec := range map[string]string{
		"numbers":         `{hard: {pods: 5, count/pods: 7}}`,
		"units":           `{hard: {requests.memory: 1500Mi, limits.cpu: 1500m, requests.storage: 1e12}}`,
		"extended":        `{hard: {requests.nvidia.com/gpu: "4", requests.hugepages-2Mi: 1Gi, hugepages-1Gi: 1Gi}}`,
		"classes":         `{hard: {gold.storageclass.storage.k8s.io/requests.storage: 1Ti, gold.deviceclass.resource.k8s.io/devices: "2"}}`,
		"legacy":          `{hard: {configmaps: "1", secrets: "1", services: "1", replicationcontrollers: "1", resourcequotas: "1", persistentvolumeclaims: "1"}}`,
		"counts":          `{hard: {count/jobs.batch: "1", count/pods: "1", count/widgets.example.com: "1"}}`,
		"one-amount":      `{hard: {cpu: "1", requests.cpu: 1000m}}`,
		"zero":            `{hard: {pods: "0"}}`,
		"empty":           `{}`,
		"scopes":          `{hard: {pods: "1"}, scopes: [Terminating, BestEffort]}`,
		"selector":        `{hard: {pods: "1"}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [gold]}]}}`,
		"as-many-as-fit":  `{hard: {` + manyNames(64) + `}}`,
		"members":         `{hard: {pods: "9"}, distribution: {mode: Static, members: [{cluster: east, hard: {pods: "5"}}, {cluster: west, min: {pods: "1"}, max: {pods: "4"}}]}}`,
		"cluster-selects": `{clusterSelector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: NotIn, values: [d]}]}}`,
	} {
		if err := x.write(t.Context(), name, spec); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
	q := x.becomes("empty", condition("Ready", "True", "Reported"))
	if q.Spec.StalePolicy != v1alpha1.KeepLast {
		t.Errorf("stalePolicy defaults to %q", q.Spec.StalePolicy)
	}
	q, err := x.get(t.Context(), "members")
	x.must(err)
	if weight := q.Spec.Distribution.Members[0].Weight; weight == nil || *weight != 1 {
		t.Errorf("weight defaults to %v", weight)
	}
}

// Scopes never change, the selector of scopes not while limits are divided.
func TestImmutableFields(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	const (
		gold   = `scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [gold]}]}`
		silver = `scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [silver]}]}`
		shares = `distribution: {mode: Weighted}`
	)
	for name, test := range map[string]struct {
		before, after string
		refused       string // words of the message; empty: accepted
	}{
		"scopes-changed":   {`{scopes: [Terminating]}`, `{scopes: [NotTerminating]}`, "scopes are immutable"},
		"scopes-removed":   {`{scopes: [Terminating]}`, `{}`, "scopes are immutable"},
		"scopes-added":     {`{}`, `{scopes: [Terminating]}`, "scopes are immutable"},
		"scopes-kept":      {`{scopes: [Terminating]}`, `{scopes: [Terminating], hard: {pods: "1"}}`, ""},
		"observed":         {`{` + gold + `}`, `{` + silver + `}`, ""},
		"divided":          {`{` + shares + `, ` + gold + `}`, `{` + shares + `, ` + silver + `}`, "scopeSelector is immutable"},
		"divided-removed":  {`{` + shares + `, ` + gold + `}`, `{` + shares + `}`, "scopeSelector is immutable"},
		"division-removed": {`{` + shares + `, ` + gold + `}`, `{` + silver + `}`, ""},
		"hard-changed":     {`{hard: {pods: "1"}}`, `{hard: {pods: "2", configmaps: "1"}}`, ""},
	} {
		x.must(x.write(t.Context(), name, test.before))
		var err error
		x.eventually(soon, func(ctx context.Context) error { // the hub writes status meanwhile
			if err = x.write(ctx, name, test.after); apierrors.IsConflict(err) {
				return err
			}
			return nil
		})
		switch {
		case test.refused == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
			t.Errorf("%s: want a refusal that says %q, got %v", name, test.refused, err)
		}
	}
}

// table is what the API server prints of objects.
func (x *tenant) table(path string) *metav1.Table {
	x.t.Helper()
	text, err := x.Hub.Kubernetes.CoreV1().RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(x.t.Context())
	x.must(err)
	table := &metav1.Table{}
	x.must(json.Unmarshal(text, table))
	return table
}

// cells are those of an object's row in the columns, wide ones among them.
func cells(table *metav1.Table, name string) map[string]string {
	for _, row := range table.Rows {
		shown := map[string]string{}
		for i, column := range table.ColumnDefinitions {
			if row.Cells[i] != nil {
				shown[column.Name] = fmt.Sprint(row.Cells[i])
			}
		}
		if shown["Name"] == name {
			return shown
		}
	}
	return nil
}

func columnNames(table *metav1.Table) (narrow, wide []string) {
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			narrow = append(narrow, column.Name)
		} else {
			wide = append(wide, column.Name)
		}
	}
	return narrow, wide
}

// kubectl get shows what DESIGN promises.
func TestColumns(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	x.create("east", pod("a", requests("cpu", "1", "memory", "1Gi")))
	x.quota("all", list("requests.cpu", "4", "requests.memory", "8Gi", "pods", "10"), sharedMembers)
	x.becomes("all", complete, uses("pods", "1"))
	x.quota("divided", list("pods", "10"), in("east"), func(s *v1alpha1.FleetQuotaSpec) {
		s.Distribution = &v1alpha1.Distribution{Mode: v1alpha1.Balanced}
	})
	x.becomes("divided", complete)

	table := x.table("/apis/fleetquota.io/v1alpha1/namespaces/" + x.namespace + "/fleetquotas")
	narrow, wide := columnNames(table)
	if want := []string{"Name", "Mode", "Ready", "Used%", "Clusters", "Age"}; !slices.Equal(narrow, want) {
		t.Errorf("columns %v, want %v", narrow, want)
	}
	if want := []string{"CPU", "Memory", "Pods", "Stale"}; !slices.Equal(wide, want) {
		t.Errorf("wide columns %v, want %v", wide, want)
	}
	want := map[string]string{
		"Ready": "True", "Used%": "25%", "Clusters": "3/3", "CPU": "1/4", "Memory": "1Gi/8Gi", "Pods": "1/10", "Mode": "", "Stale": "",
	}
	have := cells(table, "all")
	for column, text := range want {
		if have[column] != text {
			t.Errorf("%s shows %q, want %q", column, have[column], text)
		}
	}
	if mode := cells(table, "divided")["Mode"]; mode != "Balanced" {
		t.Errorf("Mode shows %q", mode)
	}

	table = x.table("/apis/fleetquota.io/v1alpha1/fleetmembers")
	narrow, _ = columnNames(table)
	if want := []string{"Name", "Ready", "Version", "Local", "Last-Seen", "Age"}; !slices.Equal(narrow, want) {
		t.Errorf("columns %v, want %v", narrow, want)
	}
	have = cells(table, "west")
	for column, text := range map[string]string{"Ready": "True", "Version": x.version("west"), "Local": "Always", "Last-Seen": ""} {
		if have[column] != text {
			t.Errorf("%s shows %q, want %q", column, have[column], text)
		}
	}
}

// Status is written through its own subresource alone, and a spec goes through
// the typed client and back unchanged.
func TestTypedClientAndStatusSubresource(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	api := x.Hub.Quota.Quotas(x.namespace)
	weight := int32(3)
	written := &v1alpha1.FleetQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "all", Labels: map[string]string{"a": "b"}},
		Spec: v1alpha1.FleetQuotaSpec{
			Hard: list("requests.cpu", "1500m", "pods", "5", "count/widgets.example.com", "1"), StalePolicy: v1alpha1.AssumeHard,
			Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotTerminating},
			ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"gold"}},
			}},
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "nowhere"}},
			Distribution: &v1alpha1.Distribution{
				Mode: v1alpha1.Static, Paused: true, AdoptExisting: true, CreateNamespaces: true, WhenRemoved: v1alpha1.DeleteQuotas,
				Members: []v1alpha1.MemberShare{{Cluster: "east", Weight: &weight, Hard: list("pods", "1"), Min: list("pods", "0"), Max: list("pods", "2")}},
			},
		},
		Status: v1alpha1.FleetQuotaStatus{Used: list("pods", "999")},
	}
	made, err := api.Create(t.Context(), written.DeepCopy(), metav1.CreateOptions{})
	x.must(err)
	if !equality.Semantic.DeepEqual(made.Spec, written.Spec) {
		t.Errorf("the spec reads back as %+v", made.Spec)
	}
	if len(made.Status.Used) > 0 {
		t.Error("the status came in with the spec")
	}
	generation := x.becomes("all", condition("Ready", "True", "Reported")).Generation

	_, err = api.Patch(t.Context(), "all", types.MergePatchType, []byte(`{"status":{"used":{"pods":"999"}},"metadata":{"labels":{"c":"d"}}}`), metav1.PatchOptions{})
	x.must(err)
	q, err := x.get(t.Context(), "all")
	x.must(err)
	if q.Generation != generation || len(q.Status.Used) > 0 || q.Labels["c"] != "d" {
		t.Errorf("generation %d, used %s, labels %v after a patch of status beside the subresource", q.Generation, text(q.Status.Used), q.Labels)
	}
	// A foreign writer of status is put right.
	x.eventually(soon, func(ctx context.Context) error {
		q, err := x.get(ctx, "all")
		if err != nil {
			return err
		}
		q.Status.Used = list("pods", "999")
		_, err = api.UpdateStatus(ctx, q, metav1.UpdateOptions{})
		return err
	})
	x.becomes("all", absent("pods"))

	found, err := api.List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"})
	x.must(err)
	if len(found.Items) != 1 {
		t.Errorf("a label finds %d", len(found.Items))
	}
	if _, err := x.Hub.Quota.Members().Get(t.Context(), "east", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := x.Hub.Dynamic.Resource(fleetMembers).Get(t.Context(), "east", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	grant := &v1alpha1.FleetGrant{ObjectMeta: named("all"), Spec: v1alpha1.FleetGrantSpec{
		Hard: list("pods", "5"), Revision: 7,
		Members: []v1alpha1.Grant{{Cluster: "east", QuotaUID: "u", Revision: 7, Granted: list("pods", "3"), Target: list("pods", "2")}},
	}}
	kept, err := x.Hub.Quota.Grants(x.namespace).Create(t.Context(), grant.DeepCopy(), metav1.CreateOptions{})
	x.must(err)
	if !equality.Semantic.DeepEqual(kept.Spec, grant.Spec) {
		t.Errorf("the FleetGrant reads back as %+v", kept.Spec)
	}
	if shown := cells(x.table("/apis/fleetquota.io/v1alpha1/namespaces/"+x.namespace+"/fleetgrants"), "all"); shown["Revision"] != "7" {
		t.Errorf("a FleetGrant shows as %v", shown)
	}
	x.must(api.Delete(t.Context(), "all", metav1.DeleteOptions{}))
	if _, err := x.get(t.Context(), "all"); !apierrors.IsNotFound(err) {
		t.Errorf("after its deletion: %v", err)
	}
}
