package main

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetquota/fleetquota/federation/v1alpha1/client"
)

// errNoAPI is the answer of a cluster without our types.
var errNoAPI = errors.New("the hub has no FleetQuota API: is this the right context? install it with kubectl apply -k deploy/hub")

// hubConfig says how to reach the hub.
func (s *shell) hubConfig() (*rest.Config, error) {
	raw, err := s.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config, err := s.flags.ToRESTConfig()
	if clientcmd.IsEmptyConfig(err) || (err == nil && len(raw.Clusters) == 0 && *s.flags.APIServer == "" && config.BearerTokenFile == "") {
		return nil, errors.New("no kubeconfig says where the hub is: set KUBECONFIG, or use --kubeconfig FILE")
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return unhurried(config), nil
}

// unhurried lets a command make its few requests at once: the server limits
// its clients by itself.
func unhurried(config *rest.Config) *rest.Config {
	config.QPS = -1
	return config
}

// hub is the client of our own types at the hub.
func (s *shell) hub() (*client.Client, error) {
	config, err := s.hubConfig()
	if err != nil {
		return nil, err
	}
	return client.New(config, nil)
}

// hubCore is the client of Kubernetes' own types at the hub.
func (s *shell) hubCore() (*kubernetes.Clientset, error) {
	config, err := s.hubConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// namespace is the one of the flag, else of the context, else default.
func (s *shell) namespace() (string, error) {
	namespace, _, err := s.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	return namespace, nil
}

// hubError says of an error of the hub's API server what to do about it.
func hubError(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case noSuchAPI(err):
		return errNoAPI
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: the hub does not accept your credentials: log in again, or choose another --context: %w", doing, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: you may not: the role view in its namespace or the cluster role fleetquota-view allows it: %w", doing, err)
	case utilnet.IsConnectionRefused(err):
		return fmt.Errorf("%s: the hub does not answer: is it up, and is this the right context? %w", doing, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// noSuchAPI tells a path that the server does not serve from an object that
// it does not have: only the latter is answered with a Status.
func noSuchAPI(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
