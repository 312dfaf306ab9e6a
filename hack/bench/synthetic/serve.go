package synthetic

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// ServeHTTP answers as the API server of the member.
func (m *Member) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+m.Token {
		f, _ := negotiate(r, "")
		f.fail(w, apierrors.NewUnauthorized("Unauthorized").ErrStatus)
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/version":
		m.answerVersion(w)
	case m.discovery.serve(w, r):
	case parts[0] == "api" && len(parts) > 2:
		m.route(w, r, schema.GroupVersion{Version: parts[1]}, parts[2:])
	case parts[0] == "apis" && len(parts) > 3:
		m.route(w, r, schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:])
	default:
		nowhere(w)
	}
}

// nowhere is how a real server answers for a path that it does not know.
func nowhere(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }

// route finds what a path below a group and version means.
func (m *Member) route(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion, parts []string) {
	q := question{}
	if parts[0] == "namespaces" && len(parts) > 2 {
		q.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		q.name = parts[1]
	}
	resource := gv.WithResource(parts[0])
	t, ok := m.tables[resource]
	asked := r.Method + " " + strings.Join(parts[min(len(parts), 2):], "/")
	switch {
	case asked == "POST " && resource == reviewed():
		m.review(w, r)
	case !ok:
		m.unknown(w, r, gv)
	case asked == "GET ":
		t.serve(w, r, q)
	case asked == "PUT status" && resource == m.quotas.kind.GroupVersionResource:
		m.writeStatus(w, r, q)
	default:
		f, _ := negotiate(r, "")
		f.fail(w, apierrors.NewBadRequest("the synthetic server does not "+r.Method+" "+strings.Join(parts, "/")).ErrStatus)
	}
}

// reviewed is where a client asks what it may do.
func reviewed() schema.GroupVersionResource {
	return authorizationv1.SchemeGroupVersion.WithResource(reviews)
}

// unknown answers for a kind that is not served, of a group that may be.
func (m *Member) unknown(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion) {
	if !slices.ContainsFunc(m.kinds, func(k kind) bool { return k.GroupVersion() == gv }) {
		nowhere(w)
		return
	}
	f, _ := negotiate(r, "")
	f.fail(w, metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	})
}

// review allows everything.
func (m *Member) review(w http.ResponseWriter, r *http.Request) {
	f, _ := negotiate(r, "")
	review := &authorizationv1.SelfSubjectAccessReview{}
	if err := read(r, review); err != nil {
		f.refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "everything is allowed"}
	review.TypeMeta = metav1.TypeMeta{}
	f.answer(w, http.StatusCreated, authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), review)
}

// read decodes the body of a request.
func read(r *http.Request, into runtime.Object) error {
	const largest = 1 << 20
	body, err := io.ReadAll(io.LimitReader(r.Body, largest))
	if err != nil {
		return err
	}
	_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, into)
	return err
}

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// writeStatus stores the status of a ResourceQuota, if nobody else has written
// since the version that it is based on.
func (m *Member) writeStatus(w http.ResponseWriter, r *http.Request, q question) {
	f, _ := negotiate(r, "")
	update := &corev1.ResourceQuota{}
	if err := read(r, update); err != nil {
		f.refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	stored, err := m.storeStatus(q, update)
	if err != nil {
		f.refuse(w, err)
		return
	}
	f.answer(w, http.StatusOK, m.quotas.kind.kind(), stored)
}

func (m *Member) storeStatus(q question, update *corev1.ResourceQuota) (*corev1.ResourceQuota, error) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	kind := m.quotas.kind.GroupResource()
	found, ok := m.quotas.history.objects.Get(thing{namespace: q.namespace, name: q.name})
	if !ok {
		return nil, apierrors.NewNotFound(kind, q.name)
	}
	before := found.value.(*corev1.ResourceQuota) //nolint:errcheck,forcetypeassert // the table holds nothing else
	if update.ResourceVersion != "" && update.ResourceVersion != before.ResourceVersion {
		return nil, apierrors.NewConflict(kind, q.name, errModified)
	}
	if equality.Semantic.DeepEqual(before.Status, update.Status) {
		return before, nil
	}
	now := before.DeepCopy()
	now.Status = update.Status
	m.set(m.quotas, now)
	return now, nil
}
