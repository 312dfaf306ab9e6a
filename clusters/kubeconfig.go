package clusters

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// maxKubeconfig is what a Secret can hold.
const maxKubeconfig = 1 << 20

// Allowances are what a kubeconfig may do beyond the least.
type Allowances struct {
	Proxy bool // name a proxy
}

// ParseKubeconfig rebuilds a login from what is on the allow-list: one cluster
// with an https address, CA data or the system's roots, and one user with a
// token or a client certificate inline.
//
// A kubeconfig is code from a stranger: used as it is, it can run programs, read
// files, and send what it read to an address of its choice.
func ParseKubeconfig(data []byte, allow Allowances) (*Login, *Refusal) {
	file, refusal := decodeKubeconfig(data)
	if refusal != nil {
		return nil, refusal
	}
	if refusal := checkFile(file); refusal != nil {
		return nil, refusal
	}
	cluster, user := &file.Clusters[0].Cluster, &file.AuthInfos[0].AuthInfo
	if refusal := firstBroken(
		checkUser(user), checkCluster(cluster), checkCurrent(file), checkServer(cluster.Server),
	); refusal != nil {
		return nil, refusal
	}
	login := &Login{
		token: strings.TrimSpace(user.Token),
		config: &rest.Config{
			Host:               strings.TrimRight(cluster.Server, "/"),
			DisableCompression: cluster.DisableCompression,
			TLSClientConfig: rest.TLSClientConfig{
				ServerName: cluster.TLSServerName,
				CAData:     cluster.CertificateAuthorityData,
				CertData:   user.ClientCertificateData,
				KeyData:    user.ClientKeyData,
			},
		},
	}
	if refusal := login.setProxy(cluster.ProxyURL, allow); refusal != nil {
		return nil, refusal
	}
	if refusal := login.checkSecrets(); refusal != nil {
		return nil, refusal
	}
	return login, nil
}

// yamlLine finds the position in an error of the YAML parser. It is anchored,
// since what follows may be the text of the file.
var yamlLine = regexp.MustCompile(`^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\s+)?line (\d{1,7}):`)

func decodeKubeconfig(data []byte) (*clientcmdv1.Config, *Refusal) {
	if len(data) > maxKubeconfig {
		return nil, &Refusal{ReasonTooLarge, "the kubeconfig is larger than 1 MiB"}
	}
	file := &clientcmdv1.Config{}
	err := yaml.UnmarshalStrict(data, file)
	if err == nil {
		return file, nil
	}
	// Nothing else of the error is shown: it quotes the file.
	if at := yamlLine.FindStringSubmatch(err.Error()); at != nil {
		return nil, &Refusal{ReasonParseError, "the kubeconfig is not valid YAML at line " + at[1]}
	}
	if strings.Contains(err.Error(), `unknown field "`) {
		return nil, &Refusal{ReasonParseError, "the kubeconfig has a field that no kubeconfig has; is each where it belongs?"}
	}
	return nil, &Refusal{ReasonParseError, "a field of the kubeconfig has the wrong type"}
}

func (l *Login) setProxy(proxy string, allow Allowances) *Refusal {
	if proxy == "" {
		return nil
	}
	if !allow.Proxy {
		return &Refusal{ReasonProxyNotAllowed, "proxy-url is not allowed by this hub"}
	}
	u, err := url.Parse(proxy)
	if err != nil || u.Hostname() == "" {
		return &Refusal{ReasonProxyNotAllowed, "proxy-url is not a URL with a host"}
	}
	if u.User != nil {
		return &Refusal{ReasonProxyNotAllowed, "proxy-url may hold no user and password"}
	}
	switch u.Scheme {
	case "http", "https", "socks5":
		l.proxy, l.config.Proxy = proxy, http.ProxyURL(u)
		return nil
	default:
		return &Refusal{ReasonProxyNotAllowed, "proxy-url must begin with http://, https:// or socks5://"}
	}
}
