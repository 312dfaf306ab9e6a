package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// memberTimeout bounds one request to a member.
const memberTimeout = 30 * time.Second

// tokenPlaceholder stands where a token would be printed.
const tokenPlaceholder = "(token not shown)"

// target is a member as the user's own kubeconfig reaches it.
type target struct {
	config  *rest.Config // with the user's credentials
	cluster *clientcmdapi.Cluster
}

// target reads a context of a kubeconfig file, or of the user's kubeconfig
// where the file is empty. It asks no cluster.
func (s *shell) target(file, name string) (*target, error) {
	raw, err := s.rawConfig(file)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the member: %w", err)
	}
	found, ok := raw.Contexts[name]
	if !ok {
		known := slices.Sorted(maps.Keys(raw.Contexts))
		return nil, fmt.Errorf("no context %q in the kubeconfig: it has %s", name, orNone(strings.Join(known, ", ")))
	}
	cluster, ok := raw.Clusters[found.Cluster]
	if !ok {
		return nil, fmt.Errorf("context %q names a cluster %q that the kubeconfig does not have", name, found.Cluster)
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(raw, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read context %q: %w", name, err)
	}
	config.Timeout = memberTimeout
	return &target{config: unhurried(config), cluster: cluster}, nil
}

func (s *shell) rawConfig(file string) (clientcmdapi.Config, error) {
	if file == "" {
		return s.flags.ToRawKubeConfigLoader().RawConfig()
	}
	raw, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}).Load()
	if err != nil {
		return clientcmdapi.Config{}, err
	}
	return *raw, nil
}

// endpoint is how the hub will reach the member: what the hub accepts of the
// user's context, complete in itself. Server, unless empty, takes the place of
// the context's.
func (t *target) endpoint(server string) (*clientcmdapi.Cluster, error) {
	own := clientcmdapi.NewCluster()
	own.Server, own.TLSServerName = t.cluster.Server, t.cluster.TLSServerName
	if server != "" {
		own.Server = server
	}
	if err := checkServer(own.Server); err != nil {
		return nil, err
	}
	switch {
	case t.cluster.InsecureSkipTLSVerify:
		return nil, errors.New("the context does not verify the server (insecure-skip-tls-verify), which the hub refuses: put the cluster's CA into the context")
	case t.cluster.ProxyURL != "":
		return nil, errors.New("the context goes through a proxy (proxy-url), which the hub refuses: use --member-kubeconfig with a context without one")
	}
	ca, err := authority(t.cluster)
	if err != nil {
		return nil, err
	}
	own.CertificateAuthorityData = ca
	return own, nil
}

// checkServer refuses what the hub would refuse. Its errors do not repeat
// what may hold a password.
func checkServer(server string) error {
	u, err := url.Parse(server)
	switch {
	case err != nil:
		return errors.New("the server of the context is not a URL")
	case u.Scheme != "https":
		return fmt.Errorf("the server of the context is reached by %q, the hub accepts https only", u.Scheme)
	case u.User != nil:
		return errors.New("the server of the context holds a user name, which the hub refuses")
	case u.Host == "":
		return errors.New("the server of the context has no host")
	}
	return nil
}

// authority is the CA of a cluster, read from its file where it is in one.
// None at all stands for the authorities that the hub's system trusts.
func authority(cluster *clientcmdapi.Cluster) ([]byte, error) {
	ca := cluster.CertificateAuthorityData
	if len(ca) == 0 && cluster.CertificateAuthority != "" {
		var err error
		if ca, err = os.ReadFile(cluster.CertificateAuthority); err != nil {
			return nil, fmt.Errorf("read the CA of the context: %w", err)
		}
	}
	if len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return nil, errors.New("the CA of the context holds no certificate")
	}
	return ca, nil
}

// loopback says whether only this machine reaches a server.
func loopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || (ip != nil && ip.IsLoopback())
}

// kubeconfig is the smallest one that reaches a member with a token.
func kubeconfig(member string, cluster *clientcmdapi.Cluster, token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[member] = cluster
	config.AuthInfos[member] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[member] = &clientcmdapi.Context{Cluster: member, AuthInfo: member}
	config.CurrentContext = member
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, errors.New("write the kubeconfig of the member") // the cause could hold the token
	}
	return data, nil
}
