package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

//go:embed sample/*.yaml
var samples embed.FS

// The teams, each a namespace everywhere.
const (
	teamData   = "team-data"
	teamSearch = "team-search"
	teamShop   = "team-shop"
)

// memberSpec is one of the demo's members.
type memberSpec struct {
	name   string
	native bool   // it runs Kubernetes' own quota controller
	tier   string // a label
	pods   map[string]int
}

// fleetOfDemo is the members, in the order of their columns.
func fleetOfDemo() []memberSpec {
	return []memberSpec{
		{name: "eu-1", native: true, tier: "prod", pods: map[string]int{teamShop: 8, teamSearch: 6, teamData: 2}},
		{name: "us-1", tier: "prod", pods: map[string]int{teamShop: 7, teamSearch: 5, teamData: 2}},
		{name: "ap-1", tier: "test", pods: map[string]int{teamShop: 5, teamSearch: 4, teamData: 1}},
	}
}

// loadMember fills a member with what its teams run. The quotas come last:
// until their status is known, they would refuse the rest.
func loadMember(ctx context.Context, member *scene.Cluster, spec memberSpec) error {
	if err := applySample(ctx, member, "types"); err != nil {
		return err
	}
	// The new kind takes a moment to be served.
	err := scene.Eventually(ctx, 20*time.Second, func(ctx context.Context) error {
		return applySample(ctx, member, "objects")
	})
	if err != nil {
		return err
	}
	for team, count := range spec.pods {
		for i := range count {
			if err := createPod(ctx, member, sampleOf(team), fmt.Sprintf("base-%d", i)); err != nil {
				return err
			}
		}
	}
	return applySample(ctx, member, "local")
}

// workload is what the pods of a team are like.
type workload struct {
	team     string
	cpu      string
	memory   string
	deadline time.Duration // 0: none
}

func sampleOf(team string) workload {
	switch team {
	case teamShop:
		return workload{team: team, cpu: "250m", memory: "512Mi"}
	case teamData:
		return workload{team: team, cpu: "500m", memory: "1Gi", deadline: time.Hour}
	default:
		return workload{team: team, cpu: "100m", memory: "256Mi"}
	}
}

func (w workload) pod(name string) (*corev1.Pod, error) {
	requests := corev1.ResourceList{}
	for key, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: w.cpu, corev1.ResourceMemory: w.memory} {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", key, w.team, err)
		}
		requests[key] = quantity
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.team, Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "example.com/" + w.team + ":1", Resources: corev1.ResourceRequirements{Requests: requests},
		}}},
	}
	if w.deadline > 0 {
		seconds := int64(w.deadline.Seconds())
		pod.Spec.ActiveDeadlineSeconds = &seconds
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	return pod, nil
}

func createPod(ctx context.Context, member *scene.Cluster, w workload, name string) error {
	pod, err := w.pod(name)
	if err != nil {
		return err
	}
	_, err = member.Kubernetes.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// applySample applies one of the files.
func applySample(ctx context.Context, cluster *scene.Cluster, name string) error {
	text, err := samples.ReadFile("sample/" + name + ".yaml")
	if err != nil {
		return err
	}
	objects, err := decode(text)
	if err != nil {
		return fmt.Errorf("read sample/%s.yaml: %w", name, err)
	}
	return cluster.Apply(ctx, objects...)
}

func decode(text []byte) ([]runtime.Object, error) {
	const buffer = 4096
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), buffer)
	var objects []runtime.Object
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}
