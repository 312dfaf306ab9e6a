package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/evaluator/wire"
)

// reader reads the objects of a kind, by the rules of the member.
func (e *engagement) reader(kind schema.GroupResource) *wire.Reader {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hub.charges.Reader(kind, e.set)
}

// lister is how to list and watch a kind in a namespace: where charges depend on
// what is in an object, as what is needed of it; else its metadata alone.
func (e *engagement) lister(reader *wire.Reader, kind schema.GroupVersionResource, namespace string) (cache.ListerWatcher, runtime.Object, error) {
	if reader.Reads() {
		client, err := slimClient(e.conn, reader)
		if err != nil {
			return nil, nil, err
		}
		return cache.NewListWatchFromClient(client, kind.Resource, namespace, fields.Everything()), &wire.Object{}, nil
	}
	api, err := metadata.NewForConfigAndClient(metadata.ConfigFor(e.conn.Config), e.conn.Client)
	if err != nil {
		return nil, nil, err
	}
	objects := api.Resource(kind).Namespace(namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return objects.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, o)
		},
	}, &metav1.PartialObjectMetadata{}, nil
}

// slimClient is a client whose lists and watches give what the reader reads. It
// prefers protobuf; a server that has none answers in JSON.
func slimClient(conn *clusters.Connection, reader *wire.Reader) (rest.Interface, error) {
	config := rest.CopyConfig(conn.Config)
	version := reader.Version()
	config.GroupVersion = &version
	config.APIPath = "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.NegotiatedSerializer = reader.Serializer(scheme.Codecs.WithoutConversion())
	return rest.RESTClientForConfigAndClient(config, conn.Client)
}
