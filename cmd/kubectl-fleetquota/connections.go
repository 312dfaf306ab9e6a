package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetquota/fleetquota/federation/v1alpha1/client"
)

// connections are the clients of both sides. Those of the member are nil where
// it is not asked.
type connections struct {
	hub     *client.Client
	hubCore kubernetes.Interface

	member  kubernetes.Interface
	objects dynamic.Interface // of the member
}

// connect makes the clients; member may be nil.
func (s *shell) connect(member *target) (*connections, error) {
	var c connections
	var err error
	if c.hub, err = s.hub(); err != nil {
		return nil, err
	}
	if c.hubCore, err = s.hubCore(); err != nil {
		return nil, err
	}
	if member == nil {
		return &c, nil
	}
	if c.member, err = kubernetes.NewForConfig(member.config); err != nil {
		return nil, fmt.Errorf("connect to the member: %w", err)
	}
	if c.objects, err = dynamic.NewForConfig(member.config); err != nil {
		return nil, fmt.Errorf("connect to the member: %w", err)
	}
	return &c, nil
}

// clusterUID is the identity of a cluster.
func clusterUID(ctx context.Context, core kubernetes.Interface) (types.UID, error) {
	namespace, err := core.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read its namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return namespace.UID, nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
