package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// noon is the time of every test.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

const secretToken = "very-secret-token"

// fakeAPI is an API server as far as the commands need one: it keeps objects
// by their path, over real TLS, and issues tokens.
type fakeAPI struct {
	*httptest.Server

	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured // path -> object
	version int
	tokens  int
	writes  []string // method and path of each write that was no dry run
	absent  string   // the API group that it does not serve
	denied  string   // a token that it does not accept
	secret  string   // a part of the paths that nobody may read
	life    time.Duration
	events  chan string // what a watch sends: TYPE and the object as YAML
}

func newFakeAPI(t *testing.T, uid string, manifests ...string) *fakeAPI {
	t.Helper()
	f := &fakeAPI{
		objects: map[string]*unstructured.Unstructured{},
		events:  make(chan string, 10), // never blocks a test
	}
	f.add(t, "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: "+uid+"}}")
	f.add(t, "{apiVersion: v1, kind: Namespace, metadata: {name: default}}")
	for _, manifest := range manifests {
		f.add(t, manifest)
	}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.CloseClientConnections)
	t.Cleanup(f.Close)
	return f
}

func decode(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatalf("%v in\n%s", err, manifest)
	}
	return object
}

func pathOf(object *unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	parts := []string{"/apis", gvk.Group, gvk.Version}
	if gvk.Group == "" {
		parts = []string{"/api", gvk.Version}
	}
	if object.GetNamespace() != "" {
		parts = append(parts, "namespaces", object.GetNamespace())
	}
	return path.Join(append(parts, strings.ToLower(gvk.Kind)+"s", object.GetName())...)
}

func (f *fakeAPI) add(t *testing.T, manifest string) {
	t.Helper()
	f.put(decode(t, manifest))
}

func (f *fakeAPI) put(object *unstructured.Unstructured) {
	f.version++
	object.SetResourceVersion(strconv.Itoa(f.version))
	f.objects[pathOf(object)] = object
}

// object is a copy of what is kept at a path, nil for nothing.
func (f *fakeAPI) object(at string) *unstructured.Unstructured {
	f.mu.Lock()
	defer f.mu.Unlock()
	if object := f.objects[at]; object != nil {
		return object.DeepCopy()
	}
	return nil
}

func (f *fakeAPI) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := path.Base(r.URL.Path)
	switch {
	case f.absent != "" && strings.Contains(r.URL.Path, f.absent):
		http.NotFound(w, r)
	case f.denied != "" && r.Header.Get("Authorization") == "Bearer "+f.denied:
		status(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "no")
	case f.secret != "" && strings.Contains(r.URL.Path, f.secret):
		status(w, http.StatusForbidden, metav1.StatusReasonForbidden, path.Base(r.URL.Path)+" is forbidden")
	case r.URL.Path == "/version":
		answer(w, map[string]any{"gitVersion": "v1.37.2"})
	case r.URL.Path == "/apis/fleetquota.io/v1alpha1":
		answer(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "fleetquota.io/v1alpha1", "resources": []any{}})
	case r.URL.Query().Get("watch") != "":
		f.serveWatch(w, r)
	case r.Method == http.MethodGet && strings.HasSuffix(name, "s") && f.objects[r.URL.Path] == nil && isCollection(r.URL.Path):
		f.serveList(w, r)
	case r.Method == http.MethodGet:
		f.serveGet(w, r)
	case r.Method == http.MethodPost && name == "token":
		f.serveToken(w)
	default:
		f.serveWrite(w, r)
	}
}

// isCollection tells .../namespaces/NS/RESOURCE from .../RESOURCE/NAME.
func isCollection(p string) bool {
	parts := strings.Split(strings.Trim(p, "/"), "/")
	rest := parts[2:] // after api/v1
	if parts[0] == "apis" {
		rest = parts[3:]
	}
	return len(rest)%2 == 1
}

func (f *fakeAPI) serveGet(w http.ResponseWriter, r *http.Request) {
	object := f.objects[r.URL.Path]
	if object == nil {
		status(w, http.StatusNotFound, metav1.StatusReasonNotFound, path.Base(r.URL.Path)+" not found")
		return
	}
	answer(w, object.Object)
}

func (f *fakeAPI) serveList(w http.ResponseWriter, r *http.Request) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		status(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	prefix, resource := path.Split(r.URL.Path)
	items := []any{}
	for _, at := range slices.Sorted(maps.Keys(f.objects)) {
		object := f.objects[at]
		if strings.HasPrefix(at, prefix) && path.Base(path.Dir(at)) == resource && selector.Matches(labels.Set(object.GetLabels())) {
			items = append(items, object.Object)
		}
	}
	answer(w, map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(f.version)}, "items": items})
}

// serveWatch sends what the test puts into events, until the client goes.
func (f *fakeAPI) serveWatch(w http.ResponseWriter, r *http.Request) {
	f.mu.Unlock()
	defer f.mu.Lock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for {
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case event := <-f.events:
			kind, manifest, _ := strings.Cut(event, " ")
			object, err := yaml.YAMLToJSON([]byte(manifest))
			if err != nil {
				return
			}
			io.WriteString(w, `{"type":"`+kind+`","object":`+string(object)+"}\n")
		}
	}
}

func (f *fakeAPI) serveToken(w http.ResponseWriter) {
	f.tokens++
	answer(w, map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "status": map[string]any{
		"token": secretToken + strconv.Itoa(f.tokens), "expirationTimestamp": noon().Add(f.life).Format(time.RFC3339),
	}})
}

func (f *fakeAPI) serveWrite(w http.ResponseWriter, r *http.Request) {
	object := f.objects[r.URL.Path]
	if r.Method != http.MethodDelete {
		var err error
		if object, err = readObject(r.Body); err != nil {
			status(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
	} else if object == nil {
		status(w, http.StatusNotFound, metav1.StatusReasonNotFound, path.Base(r.URL.Path)+" not found")
		return
	}
	if namespace := object.GetNamespace(); namespace != "" && f.objects["/api/v1/namespaces/"+namespace] == nil {
		status(w, http.StatusNotFound, metav1.StatusReasonNotFound, "namespaces "+namespace+" not found")
		return
	}
	if r.URL.Query().Get("dryRun") == "" {
		f.writes = append(f.writes, r.Method+" "+r.URL.Path)
		f.commit(r.Method, object)
	}
	answer(w, object.Object)
}

// readObject reads JSON, or what typed clients prefer to send.
func readObject(body io.Reader) (*unstructured.Unstructured, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if json.Unmarshal(data, &object.Object) == nil {
		return object, nil
	}
	typed, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	if object.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed); err != nil {
		return nil, err
	}
	object.SetGroupVersionKind(*gvk)
	return object, nil
}

func (f *fakeAPI) commit(method string, object *unstructured.Unstructured) {
	at := pathOf(object)
	if method == http.MethodDelete {
		delete(f.objects, at)
		return
	}
	if old := f.objects[at]; old != nil && method == http.MethodPatch {
		object.SetResourceVersion(old.GetResourceVersion())
		if reflect.DeepEqual(old.Object, object.Object) {
			return
		}
	}
	f.put(object)
}

func answer(w http.ResponseWriter, body any) {
	send(w, http.StatusOK, body)
}

func send(w http.ResponseWriter, code int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		code = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(data)
}

func status(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	send(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reason, Message: message, Code: int32(code),
	})
}

// clusterOf is how a kubeconfig reaches the server.
func (f *fakeAPI) clusterOf() *clientcmdapi.Cluster {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
	return &clientcmdapi.Cluster{Server: f.URL, CertificateAuthorityData: ca}
}

// kubeconfigOf is a kubeconfig with a context for each cluster; hub is current.
func kubeconfigOf(t *testing.T, clusters map[string]*clientcmdapi.Cluster) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	for name, cluster := range clusters {
		config.CurrentContext = "hub"
		config.Clusters[name] = cluster
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: "of-the-user"}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// result is what a command has printed, and its exit code.
type result struct {
	out, errOut string
	code        int
}

// cli runs the plugin with a kubeconfig of these servers.
func cli(t *testing.T, servers map[string]*fakeAPI, args ...string) result {
	t.Helper()
	clusters := map[string]*clientcmdapi.Cluster{}
	for name, server := range servers {
		clusters[name] = server.clusterOf()
	}
	return cliWith(t, kubeconfigOf(t, clusters), args...)
}

func cliWith(t *testing.T, kubeconfig string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	s := shell{IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: &out, ErrOut: &errOut}, now: noon, patience: time.Second}
	code := run(t.Context(), append([]string{"kubectl-fleetquota", "--kubeconfig", kubeconfig}, args...), s)
	return result{out: out.String(), errOut: errOut.String(), code: code}
}

// want compares a successful result with a golden text, of which the first newline and
// the common indentation do not count.
func (r result) want(t *testing.T, golden string) {
	t.Helper()
	if r.code != 0 {
		t.Errorf("exit code %d, it said: %s", r.code, r.errOut)
	}
	golden = strings.ReplaceAll(strings.TrimPrefix(golden, "\n"), "\t", "")
	if r.out != golden {
		t.Errorf("got\n%s\nwant\n%s", r.out, golden)
	}
}
