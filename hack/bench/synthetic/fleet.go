package synthetic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Options says what the fleet is made of.
type Options struct {
	Members    int    // default 1
	Pods       int    // in each member
	Namespaces int    // in each member, beside those of Kubernetes; default 10, at most 1000
	Services   int    // in each namespace
	Quotas     bool   // a ResourceQuota in each namespace
	History    int    // events of each kind that a watch can go back; default 20,000
	Seed       uint64 // of all that chance decides
	Version    string // of Kubernetes; default v1.37.2
}

func (o Options) complete() (Options, error) {
	const members, namespaces, history = 1, 10, 20_000
	if o.Members == 0 {
		o.Members = members
	}
	if o.Namespaces == 0 {
		o.Namespaces = namespaces
	}
	if o.History == 0 {
		o.History = history
	}
	if o.Version == "" {
		o.Version = "v1.37.2"
	}
	const most = 10_000
	switch {
	case o.Members < 0 || o.Pods < 0 || o.Services < 0 || o.History < 0:
		return o, errors.New("a number of things is negative")
	case o.Members > most:
		return o, fmt.Errorf("more than %d members", most)
	case o.Namespaces > maxNamespaces:
		return o, fmt.Errorf("more than %d namespaces", maxNamespaces)
	case o.Pods > maxNumber/2:
		return o, fmt.Errorf("more than %d pods in a member", maxNumber/2)
	}
	return o, nil
}

// Fleet is members that are being served.
type Fleet struct {
	Members []*Member

	authority []byte // PEM
	servers   []*http.Server
	running   sync.WaitGroup
	churn     churn
}

// Start makes the members and serves each at a port of its own on loopback,
// until Close.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	s, err := newShape(o.Namespaces)
	if err != nil {
		return nil, err
	}
	authority, certificate, err := certificates()
	if err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	f := &Fleet{authority: authority}
	for number := range o.Members {
		m := newMember(number, o, s)
		if err := f.serve(ctx, m, certificate); err != nil {
			f.Close()
			return nil, fmt.Errorf("serve %s: %w", m.Name, err)
		}
		f.Members = append(f.Members, m)
	}
	f.churn.begin(f.Members, o.Seed)
	return f, nil
}

func (f *Fleet) serve(ctx context.Context, m *Member, certificate tls.Certificate) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	m.URL = "https://" + listener.Addr().String()
	server := &http.Server{
		Handler: m, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	f.servers = append(f.servers, server)
	f.running.Go(func() {
		_ = server.ServeTLS(listener, "", "") //nolint:errcheck // it says that it was closed
	})
	return nil
}

// Close ends everything, connections included.
func (f *Fleet) Close() {
	f.churn.end()
	for _, server := range f.servers {
		_ = server.Close()
	}
	f.running.Wait()
}

// Kubeconfig is how to reach a member.
func (f *Fleet) Kubeconfig(m *Member) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["member"] = &clientcmdapi.Cluster{Server: m.URL, CertificateAuthorityData: f.authority}
	config.AuthInfos["member"] = &clientcmdapi.AuthInfo{Token: m.Token}
	config.Contexts["member"] = &clientcmdapi.Context{Cluster: "member", AuthInfo: "member"}
	config.CurrentContext = "member"
	return clientcmd.Write(*config)
}

// Truth is what each namespace uses in all members together.
func (f *Fleet) Truth() map[string]Use {
	sum := map[string]Use{}
	for _, m := range f.Members {
		for namespace, use := range m.Truth() {
			all := sum[namespace]
			sum[namespace] = all.Plus(&use)
		}
	}
	return sum
}

// Churn changes so many things in a second from now on, all over the fleet; none
// with 0.
func (f *Fleet) Churn(perSecond int) { f.churn.set(perSecond) }

// Changes is how many changes Churn has made.
func (f *Fleet) Changes() int64 { return f.churn.changes.Load() }
