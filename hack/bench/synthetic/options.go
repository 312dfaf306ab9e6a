package synthetic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// question is what a list or a watch asks for.
type question struct {
	namespace string // empty: all
	name      string // empty: all

	watch     bool
	revision  uint64
	anyOf     bool // revision 0 was asked for: what there is
	newest    bool // no revision was asked for
	exact     bool
	limit     int64
	token     *token // nil: no continue
	initial   bool   // the watch begins with what there is
	bookmarks bool
	timeout   time.Duration
}

// token is what a continue parameter holds, as kube-apiserver writes it.
type token struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"` // -1: the present one
	Start    string `json:"start"`
}

const tokenVersion = "meta.k8s.io/v1" //nolint:gosec // it opens nothing

func (t token) encode() (string, error) {
	text, err := json.Marshal(t)
	return base64.RawURLEncoding.EncodeToString(text), err
}

// parse reads a query. The errors are those of kube-apiserver; where it can do
// what we cannot, we say so.
func parse(query url.Values, q question) (question, error) {
	o := &internalversion.ListOptions{}
	if err := scheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, o); err != nil {
		return q, apierrors.NewBadRequest(err.Error())
	}
	internalversion.SetListOptionsDefaults(o, true)
	if errs := validation.ValidateListOptions(o, true); len(errs) > 0 {
		return q, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	if o.LabelSelector != nil && !o.LabelSelector.Empty() {
		return q, apierrors.NewBadRequest("the synthetic server selects by no labels")
	}
	if err := q.choose(o); err != nil {
		return q, err
	}
	return q, q.fill(o)
}

// choose reads the field selector.
func (q *question) choose(o *internalversion.ListOptions) error {
	if o.FieldSelector == nil {
		return nil
	}
	for _, r := range o.FieldSelector.Requirements() {
		switch {
		case r.Operator != "=" && r.Operator != "==":
			return apierrors.NewBadRequest("the synthetic server selects fields by equality alone")
		case r.Field == "metadata.name":
			q.name = r.Value
		case r.Field == "metadata.namespace":
			q.namespace = r.Value
		default:
			return apierrors.NewBadRequest("the synthetic server does not select by " + r.Field)
		}
	}
	return nil
}

// fill reads the rest.
func (q *question) fill(o *internalversion.ListOptions) error {
	q.watch, q.bookmarks, q.limit = o.Watch, o.AllowWatchBookmarks, o.Limit
	q.newest = o.ResourceVersion == ""
	if !q.newest {
		revision, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
		if err != nil {
			return q.invalidVersion(o.ResourceVersion, err)
		}
		q.revision, q.anyOf = revision, revision == 0
	}
	q.initial = o.SendInitialEvents != nil && *o.SendInitialEvents
	q.exact = o.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		o.ResourceVersionMatch == "" && o.Limit > 0 && q.revision > 0 && o.Continue == ""
	if o.TimeoutSeconds != nil {
		q.timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	if o.Continue == "" || q.watch {
		return nil
	}
	if q.revision > 0 {
		return apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	t, err := parseToken(o.Continue)
	q.token = t
	return err
}

// invalidVersion refuses a version that is no number. Watches of kube-apiserver
// take that for a fault of their own.
func (q *question) invalidVersion(text string, err error) error {
	invalid := field.Invalid(field.NewPath("resourceVersion"), text, err.Error())
	if q.watch {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: invalid.Error(),
		}}
	}
	return apierrors.NewBadRequest("invalid resource version: " + invalid.Error())
}

func parseToken(text string) (*token, error) {
	t := &token{}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, t)
	}
	switch {
	case err != nil:
		return nil, badToken("continue key is not valid: " + err.Error())
	case t.Version != tokenVersion:
		return nil, badToken("continue key is not valid: server does not recognize this encoded version " + t.Version)
	case t.Revision == 0:
		return nil, badToken("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	case t.Start == "":
		return nil, badToken("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
	case path.Clean("/"+strings.TrimPrefix(t.Start, "/")) != "/"+strings.TrimPrefix(t.Start, "/"):
		return nil, badToken("continue key is not valid: " + t.Start)
	}
	return t, nil
}

func badToken(why string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %s", why))
}
