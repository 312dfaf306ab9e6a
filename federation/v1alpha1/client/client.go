// Package client is the typed client of the API of fleetquota.
//
// A Client is safe for use by several goroutines. It uses JSON, the only
// format that API servers store custom resources in.
package client

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// Client reads and writes the objects of fleetquota at one API server.
type Client struct {
	rest    *rest.RESTClient
	scheme  *runtime.Scheme
	options runtime.ParameterCodec
}

// Quotas reads and writes FleetQuotas of one namespace.
type Quotas = gentype.ClientWithList[*v1alpha1.FleetQuota, *v1alpha1.FleetQuotaList]

// Members reads and writes FleetMembers.
type Members = gentype.ClientWithList[*v1alpha1.FleetMember, *v1alpha1.FleetMemberList]

// Grants reads and writes FleetGrants of one namespace.
type Grants = gentype.ClientWithList[*v1alpha1.FleetGrant, *v1alpha1.FleetGrantList]

// New makes a Client from a configuration, which it does not change. The HTTP
// client may be nil; one that is given is shared with other clients.
func New(config *rest.Config, shared *http.Client) (*Client, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, v1alpha1.SchemeGroupVersion)
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the types of %s: %w", v1alpha1.GroupName, err)
	}
	own := rest.CopyConfig(config)
	gv := v1alpha1.SchemeGroupVersion
	own.GroupVersion, own.APIPath = &gv, "/apis"
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if shared == nil {
		var err error
		if shared, err = rest.HTTPClientFor(own); err != nil {
			return nil, fmt.Errorf("make an HTTP client: %w", err)
		}
	}
	restClient, err := rest.RESTClientForConfigAndClient(own, shared)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", gv, err)
	}
	return &Client{rest: restClient, scheme: scheme, options: runtime.NewParameterCodec(scheme)}, nil
}

// Quotas is for the FleetQuotas of a namespace; of all with an empty one.
func (c *Client) Quotas(namespace string) *Quotas {
	return gentype.NewClientWithList(
		"fleetquotas", c.rest, c.options, namespace,
		func() *v1alpha1.FleetQuota { return &v1alpha1.FleetQuota{} },
		func() *v1alpha1.FleetQuotaList { return &v1alpha1.FleetQuotaList{} },
	)
}

// Members is for FleetMembers.
func (c *Client) Members() *Members {
	return gentype.NewClientWithList(
		"fleetmembers", c.rest, c.options, "",
		func() *v1alpha1.FleetMember { return &v1alpha1.FleetMember{} },
		func() *v1alpha1.FleetMemberList { return &v1alpha1.FleetMemberList{} },
	)
}

// Grants is for the FleetGrants of a namespace; of all with an empty one.
func (c *Client) Grants(namespace string) *Grants {
	return gentype.NewClientWithList(
		"fleetgrants", c.rest, c.options, namespace,
		func() *v1alpha1.FleetGrant { return &v1alpha1.FleetGrant{} },
		func() *v1alpha1.FleetGrantList { return &v1alpha1.FleetGrantList{} },
	)
}

// Scheme is the scheme of the client's types, for printers and recorders.
func (c *Client) Scheme() *runtime.Scheme { return c.scheme }
