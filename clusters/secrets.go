package clusters

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// SecretOptions says which Secrets are members.
type SecretOptions struct {
	ClusterAPI bool         // also the kubeconfig Secrets of Cluster API
	AllowProxy bool         // a kubeconfig may name a proxy
	HubName    string       // the hub is a member of itself under this name; empty: it is not
	HubConfig  *rest.Config // how to reach the hub; required with HubName
}

// Secrets is a Source of the labelled kubeconfig Secrets of one namespace. Only
// they are ever listed or watched, never all Secrets.
type Secrets struct {
	client    kubernetes.Interface
	namespace string
	options   SecretOptions
	hub       *Login // nil: the hub is no member

	mu       sync.Mutex // guards registry
	registry *registry  // nil: not running
}

// NewSecrets makes a Source of the Secrets in a namespace of the hub.
func NewSecrets(client kubernetes.Interface, namespace string, o SecretOptions) *Secrets {
	s := &Secrets{client: client, namespace: namespace, options: o}
	if o.HubName != "" && o.HubConfig != nil {
		s.hub = Trusted(o.HubConfig)
	}
	return s
}

// Run implements [Source].
func (s *Secrets) Run(ctx context.Context, sink Sink) error {
	if s.options.HubName != "" && s.hub == nil {
		return errors.New("the hub is to be a member of itself, but there is no configuration to reach it")
	}
	s.open(sink)
	informers, synced, err := s.informers()
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	defer group.Wait()
	for _, informer := range informers {
		group.Go(func() { informer.RunWithContext(ctx) })
	}
	if cache.WaitForCacheSync(ctx.Done(), synced...) {
		sink.Listed()
	}
	<-ctx.Done()
	return nil
}

// Reread implements [Rereader].
func (s *Secrets) Reread(ctx context.Context, secret types.NamespacedName) error {
	found, err := s.client.CoreV1().Secrets(secret.Namespace).Get(ctx, secret.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the watch will tell
	}
	if err != nil {
		return fmt.Errorf("read Secret %s: %w", secret, err)
	}
	if r := s.options.register(found); r != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.registry != nil {
			s.registry.refresh(secret, r)
		}
	}
	return nil
}

func (s *Secrets) open(sink Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registry = newRegistry(sink)
	if s.hub != nil {
		s.registry.put(types.NamespacedName{}, &registration{
			offer: Offer{Member: Member{Name: s.options.HubName}, Login: s.hub},
		})
	}
}

// informers watch one selector each: a selector cannot say "either label".
func (s *Secrets) informers() ([]cache.SharedIndexInformer, []cache.InformerSynced, error) {
	var informers []cache.SharedIndexInformer
	for _, options := range s.options.selectors() {
		informer := s.informer(options)
		if err := informer.SetTransform(s.options.strip); err != nil {
			return nil, nil, fmt.Errorf("watch Secrets: %w", err)
		}
		informers = append(informers, informer)
	}
	changed := func(obj any) { s.changed(informers, obj) }
	var synced []cache.InformerSynced
	for _, informer := range informers {
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    changed,
			UpdateFunc: func(_, obj any) { changed(obj) },
			DeleteFunc: changed,
		})
		if err != nil {
			return nil, nil, fmt.Errorf("watch Secrets: %w", err)
		}
		synced = append(synced, handler.HasSynced)
	}
	return informers, synced, nil
}

func (s *Secrets) informer(selector metav1.ListOptions) cache.SharedIndexInformer {
	secrets := s.client.CoreV1().Secrets(s.namespace)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector, o.FieldSelector = selector.LabelSelector, selector.FieldSelector
			return secrets.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.FieldSelector = selector.LabelSelector, selector.FieldSelector
			w, err := secrets.Watch(ctx, o)
			return w, Hasty(err)
		},
	}
	return cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, s.client), &corev1.Secret{}, cache.SharedIndexInformerOptions{})
}

// changed looks a Secret up everywhere: it may have moved from one selector to
// another, and match several.
func (s *Secrets) changed(informers []cache.SharedIndexInformer, obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return // it is no object, which no informer hands out
	}
	s.mu.Lock() // before the look, or an older one could be the last to be put
	defer s.mu.Unlock()
	var latest *registration
	for _, informer := range informers {
		found, exists, err := informer.GetStore().GetByKey(key.String())
		secret, isSecret := found.(*corev1.Secret)
		if err != nil || !exists || !isSecret {
			continue
		}
		if r := s.options.register(secret); r != nil && (latest == nil || r.newer(latest)) {
			latest = r
		}
	}
	s.registry.put(types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, latest)
}
