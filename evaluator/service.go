package evaluator

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// services charges services, their node ports and their load balancers.
type services struct{}

// Resource is the kind that services charges.
func (services) Resource() schema.GroupResource {
	return corev1.Resource("services")
}

// Covers says whether services are part of the amount.
func (services) Covers(name corev1.ResourceName) bool {
	return oneOf(Canonical(name), countServices, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers)
}

// Charge says what a service costs. It is in no scope.
func (services) Charge(obj runtime.Object, _ time.Time) (Charge, error) {
	service, err := as[corev1.Service](obj)
	if err != nil {
		return Charge{}, err
	}
	balancers := 0
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		balancers = 1
	}
	return Charge{Amounts: Amounts{
		count(countServices, 1),
		count(corev1.ResourceServicesLoadBalancers, balancers),
		count(corev1.ResourceServicesNodePorts, nodePorts(&service.Spec)),
	}}, nil
}

// nodePorts is how many node ports a service will hold. It is the intent that
// counts: the ports themselves are allocated after admission.
func nodePorts(spec *corev1.ServiceSpec) int {
	switch {
	case spec.Type != corev1.ServiceTypeNodePort && spec.Type != corev1.ServiceTypeLoadBalancer:
		return 0
	case spec.Type == corev1.ServiceTypeNodePort,
		spec.AllocateLoadBalancerNodePorts == nil,
		*spec.AllocateLoadBalancerNodePorts:
		return len(spec.Ports)
	}
	asked := 0
	for i := range spec.Ports {
		if spec.Ports[i].NodePort != 0 {
			asked++
		}
	}
	return asked
}

// Constraints is nil: a service may be created as it is.
func (services) Constraints(runtime.Object, []corev1.ResourceName) error {
	return nil
}
