package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// news is what happened last, for the lines under the table.
type news struct {
	mu      sync.Mutex // guards all below
	latest  string     // of the churn
	special string     // of the act
}

func (n *news) happened(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latest = text
}

func (n *news) announce(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.special = text
}

func (n *news) lines() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return []string{"latest:  " + n.latest, n.special}
}

// churn is the life in one member: a short story of objects that come, finish
// and go, told over and over, so that there are never more than a few.
type churn struct {
	member *scene.Cluster
	news   *news
}

// chapter is one thing that happens.
type chapter struct {
	text string
	do   func(ctx context.Context) error
}

func (c *churn) story() []chapter {
	return []chapter{
		{"a job's pod starts in team-data", c.start(teamData, "job-1")},
		{"one more pod in team-shop", c.start(teamShop, "peak-1")},
		{"a second job's pod starts in team-data", c.start(teamData, "job-2")},
		{"a new index in team-search", c.createIndex},
		{"the first job's pod finishes, and costs nothing any more", c.finish(teamData, "job-1")},
		{"a new volume of 10Gi in team-data", c.createVolume},
		{"the second job's pod finishes", c.finish(teamData, "job-2")},
		{"the pod in team-shop is deleted", c.remove(teamShop, "peak-1")},
		{"the index in team-search is deleted", c.removeIndex},
		{"the volume in team-data is deleted", c.removeVolume},
		{"finished pods in team-data are cleaned up", c.clean},
	}
}

// run tells the story until ctx ends. A member that does not answer delays
// nobody but itself.
func (c *churn) run(ctx context.Context, begin, every time.Duration) {
	wait := time.NewTimer(begin)
	defer wait.Stop()
	story := c.story()
	for i := 0; ; i = (i + 1) % len(story) {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		c.tell(ctx, story[i])
		wait.Reset(every)
	}
}

func (c *churn) tell(ctx context.Context, part chapter) {
	const patience = 3 * time.Second
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := part.do(limited)
	switch {
	case err == nil:
		c.news.happened(c.member.Name() + ": " + part.text)
	case apierrors.IsForbidden(err):
		c.news.happened(c.member.Name() + " refuses: " + strings.Join(strings.Fields(err.Error()), " "))
	default: // a person may have frozen it, or deleted what the story is about
	}
}

func (c *churn) start(team, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return createPod(ctx, c.member, sampleOf(team), name)
	}
}

// finish does what a kubelet would.
func (c *churn) finish(team, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		pods := c.member.Kubernetes.CoreV1().Pods(team)
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodSucceeded
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	}
}

func (c *churn) remove(team, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return c.member.Kubernetes.CoreV1().Pods(team).Delete(ctx, name, metav1.DeleteOptions{})
	}
}

func (c *churn) clean(ctx context.Context) error {
	for _, name := range []string{"job-1", "job-2"} {
		if err := c.remove(teamData, name)(ctx); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

const extra = "extra" // the name of what the story adds besides pods

func (c *churn) createVolume(ctx context.Context) error {
	size, err := resource.ParseQuantity("10Gi")
	if err != nil {
		return fmt.Errorf("size of the volume: %w", err)
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: extra},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
	_, err = c.member.Kubernetes.CoreV1().PersistentVolumeClaims(teamData).Create(ctx, claim, metav1.CreateOptions{})
	return err
}

// removeVolume also does what the controller would that protects volumes in
// use.
func (c *churn) removeVolume(ctx context.Context) error {
	claims := c.member.Kubernetes.CoreV1().PersistentVolumeClaims(teamData)
	claim, err := claims.Get(ctx, extra, metav1.GetOptions{})
	if err != nil {
		return err
	}
	claim.Finalizers = nil
	if _, err := claims.Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return claims.Delete(ctx, extra, metav1.DeleteOptions{})
}

func (c *churn) createIndex(ctx context.Context) error {
	index := &unstructured.Unstructured{}
	index.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Index"})
	index.SetName(extra)
	_, err := c.member.Dynamic.Resource(indexes()).Namespace(teamSearch).Create(ctx, index, metav1.CreateOptions{})
	return err
}

func (c *churn) removeIndex(ctx context.Context) error {
	return c.member.Dynamic.Resource(indexes()).Namespace(teamSearch).Delete(ctx, extra, metav1.DeleteOptions{})
}

func indexes() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "indexes"}
}
