package evaluator_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetquota/fleetquota/evaluator"
)

// service has a port for each given node port; zero is one yet to be allocated.
func service(kind corev1.ServiceType, allocate *bool, nodePorts ...int32) *corev1.Service {
	s := &corev1.Service{Spec: corev1.ServiceSpec{Type: kind, AllocateLoadBalancerNodePorts: allocate}}
	for _, port := range nodePorts {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: 80, NodePort: port})
	}
	return s
}

func TestServiceCharge(t *testing.T) {
	tests := map[string]struct {
		service          *corev1.Service
		ports, balancers string
	}{
		"a cluster IP holds nothing": {
			service: service(corev1.ServiceTypeClusterIP, nil, 0, 0), ports: "0", balancers: "0",
		},
		"a service of no type holds nothing": {
			service: service("", nil, 30000), ports: "0", balancers: "0",
		},
		"an external name holds nothing": {
			service: service(corev1.ServiceTypeExternalName, nil, 30000), ports: "0", balancers: "0",
		},
		"node ports are counted before they are allocated": {
			service: service(corev1.ServiceTypeNodePort, nil, 0, 30000), ports: "2", balancers: "0",
		},
		"a node port service cannot decline them": {
			service: service(corev1.ServiceTypeNodePort, new(false), 0, 0), ports: "2", balancers: "0",
		},
		"a load balancer holds node ports": {
			service: service(corev1.ServiceTypeLoadBalancer, nil, 0, 0, 0), ports: "3", balancers: "1",
		},
		"a load balancer holds node ports when told to": {
			service: service(corev1.ServiceTypeLoadBalancer, new(true), 0, 0), ports: "2", balancers: "1",
		},
		"a load balancer that declines holds those it names": {
			service: service(corev1.ServiceTypeLoadBalancer, new(false), 0, 30000, 0), ports: "1", balancers: "1",
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			got := charge(t, serviceKind, test.service)
			wantAmounts(t, got.Amounts, list("count/services", "1",
				"services.nodeports", test.ports, "services.loadbalancers", test.balancers))
			if got.Class != (evaluator.Class{}) || !got.Until.IsZero() || got.After != nil {
				t.Errorf("got %+v, want no class and no end", got)
			}
		})
	}
	if err := forKind(t, serviceKind).Constraints(nil, []corev1.ResourceName{"services"}); err != nil {
		t.Error(err)
	}
}
