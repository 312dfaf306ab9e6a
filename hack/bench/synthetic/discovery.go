package synthetic

import (
	"encoding/json"
	"mime"
	"net/http"
	"runtime"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// discovery answers what is served, in both forms that there are: path -> document.
type discovery struct {
	documents  map[string]any
	aggregated map[string]*apidiscoveryv2.APIGroupDiscoveryList
}

func newDiscovery(all []kind) discovery {
	d := discovery{
		documents: map[string]any{"/api": &metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
		}},
		aggregated: map[string]*apidiscoveryv2.APIGroupDiscoveryList{},
	}
	groups := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, gv := range groupVersions(all) {
		root := "/apis"
		if gv.Group == "" {
			root = "/api"
		} else {
			groups.Groups = append(groups.Groups, groupOf(gv))
		}
		d.documents[root+"/"+gv.String()] = resourcesOf(gv, all)
		if d.aggregated[root] == nil {
			list := &apidiscoveryv2.APIGroupDiscoveryList{}
			list.SetGroupVersionKind(aggregatedKind())
			d.aggregated[root] = list
		}
		d.aggregated[root].Items = append(d.aggregated[root].Items, aggregate(gv, all))
	}
	d.documents["/apis"] = groups
	return d
}

func aggregatedKind() schema.GroupVersionKind {
	return apidiscoveryv2.SchemeGroupVersion.WithKind("APIGroupDiscoveryList")
}

// groupVersions are those of all kinds, and the one of reviews.
func groupVersions(all []kind) []schema.GroupVersion {
	var gvs []schema.GroupVersion
	seen := map[schema.GroupVersion]bool{}
	for i := range all {
		if gv := all[i].GroupVersion(); !seen[gv] {
			seen[gv] = true
			gvs = append(gvs, gv)
		}
	}
	return append(gvs, authorizationv1.SchemeGroupVersion)
}

func groupOf(gv schema.GroupVersion) metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
	return metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
}

func (k *kind) verbs() []string { return []string{"get", "list", "watch"} }

const reviews = "selfsubjectaccessreviews"

func resourcesOf(gv schema.GroupVersion, all []kind) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for i := range all {
		k := &all[i]
		if k.GroupVersion() != gv {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.Resource, SingularName: strings.ToLower(k.name), Namespaced: k.namespaced, Kind: k.name, Verbs: k.verbs(),
		})
		if k.status {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.Resource + "/status", Namespaced: k.namespaced, Kind: k.name, Verbs: []string{"update"},
			})
		}
	}
	if gv == authorizationv1.SchemeGroupVersion {
		list.APIResources = []metav1.APIResource{{
			Name: reviews, SingularName: "selfsubjectaccessreview", Kind: "SelfSubjectAccessReview", Verbs: []string{"create"},
		}}
	}
	return list
}

// aggregate is what resourcesOf says, in the newer form.
func aggregate(gv schema.GroupVersion, all []kind) apidiscoveryv2.APIGroupDiscovery {
	v := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	list := resourcesOf(gv, all)
	for i := range list.APIResources {
		r := &list.APIResources[i]
		response := &metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: r.Kind}
		if _, sub, found := strings.Cut(r.Name, "/"); found {
			owner := &v.Resources[len(v.Resources)-1]
			owner.Subresources = append(owner.Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: sub, ResponseKind: response, Verbs: r.Verbs,
			})
			continue
		}
		scope := apidiscoveryv2.ScopeCluster
		if r.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		v.Resources = append(v.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: r.Name, ResponseKind: response, Scope: scope, SingularResource: r.SingularName, Verbs: r.Verbs,
		})
	}
	return apidiscoveryv2.APIGroupDiscovery{
		ObjectMeta: metav1.ObjectMeta{Name: gv.Group}, Versions: []apidiscoveryv2.APIVersionDiscovery{v},
	}
}

// serve answers a path that is discovery's, and says whether it is.
func (d *discovery) serve(w http.ResponseWriter, r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if list := d.aggregated[path]; list != nil && wantsAggregated(r) {
		kind := aggregatedKind()
		w.Header().Set("Vary", "Accept")
		writeJSONAs(w, "application/json;g="+kind.Group+";v="+kind.Version+";as="+kind.Kind, list)
		return true
	}
	document := d.documents[path]
	if document == nil {
		return false
	}
	writeJSON(w, document)
	return true
}

// wantsAggregated says whether the newer form is the first that the client would
// like and that there is.
func wantsAggregated(r *http.Request) bool {
	for clause := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		media, params, err := mime.ParseMediaType(clause)
		if err != nil || media != "application/json" {
			continue
		}
		wanted := schema.GroupVersionKind{Group: params["g"], Version: params["v"], Kind: params["as"]}
		if wanted == aggregatedKind() {
			return true
		}
		if wanted.Empty() {
			return false
		}
	}
	return false
}

func (m *Member) answerVersion(w http.ResponseWriter) {
	parts := strings.SplitN(strings.TrimPrefix(m.version, "v"), ".", 3)
	writeJSON(w, version.Info{
		Major: parts[0], Minor: parts[1], GitVersion: m.version, GoVersion: runtime.Version(), Compiler: runtime.Compiler,
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	})
}

func writeJSON(w http.ResponseWriter, document any) { writeJSONAs(w, "application/json", document) }

func writeJSONAs(w http.ResponseWriter, contentType string, document any) {
	body, err := json.Marshal(document)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body) //nolint:errcheck // the client is gone
}
