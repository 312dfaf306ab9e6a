package fleet

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/defaults"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

const (
	kindAuditFolder = "audit"                    // below the cluster's own
	kindAuditMount  = "/etc/kubernetes/auditing" // in the node and in kube-apiserver's container
	withoutQuota    = "-resourcequota-controller"
)

// argument is one flag of a program that kubeadm runs.
type argument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// kindVersion is the version whose node image is used for what a user asked.
func kindVersion(wanted string) string {
	builtIn := imageVersion(defaults.Image)
	switch {
	case wanted == "" || minorOf(wanted) == strings.TrimPrefix(wanted, "v") && minorOf(wanted) == minorOf(builtIn):
		return builtIn
	case strings.Count(wanted, ".") < 2:
		return "v" + minorOf(wanted) + ".0"
	default:
		return "v" + strings.TrimPrefix(wanted, "v")
	}
}

// kindImage is the node image of a version. The one that kind was released
// with is pinned by its digest.
func kindImage(version string) string {
	if version == imageVersion(defaults.Image) {
		return defaults.Image
	}
	return "kindest/node:" + version
}

func imageVersion(image string) string {
	_, tag, _ := strings.Cut(image, ":")
	tag, _, _ = strings.Cut(tag, "@")
	return tag
}

// kindConfig describes a cluster of one node that keeps its port and logs the
// same writes as a local cluster.
func kindConfig(dir string, s state) (*v1alpha4.Cluster, error) {
	config := &v1alpha4.Cluster{
		Networking: v1alpha4.Networking{
			APIServerAddress: "127.0.0.1",
			APIServerPort:    int32(s.Ports.API),
		},
		Nodes: []v1alpha4.Node{{
			Role:  v1alpha4.ControlPlaneRole,
			Image: kindImage(s.Version),
			ExtraMounts: []v1alpha4.Mount{{
				HostPath: filepath.Join(dir, kindAuditFolder), ContainerPath: kindAuditMount,
			}},
		}},
	}
	v1alpha4.SetDefaultsCluster(config)
	for _, api := range []string{"v1beta3", "v1beta4"} {
		patch, err := kubeadmPatch(api, s)
		if err != nil {
			return nil, err
		}
		config.KubeadmConfigPatchesJSON6902 = append(config.KubeadmConfigPatchesJSON6902, v1alpha4.PatchJSON6902{
			Group: "kubeadm.k8s.io", Version: api, Kind: "ClusterConfiguration", Patch: patch,
		})
	}
	return config, nil
}

// kubeadmPatch is the patch for one version of kubeadm's configuration. In
// v1beta3 arguments are a map, later a list; kind uses one or the other by the
// version of Kubernetes and ignores the patch that does not fit.
func kubeadmPatch(api string, s state) (string, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	var patch []operation
	add := func(component string, a argument) {
		if api == "v1beta3" {
			patch = append(patch, operation{"add", "/" + component + "/extraArgs/" + a.Name, a.Value})
			return
		}
		patch = append(patch, operation{"add", "/" + component + "/extraArgs/-", a})
	}
	extra, err := parseArguments(s.ExtraArgs)
	if err != nil {
		return "", err
	}
	native, err := parseArguments(s.NativeArgs)
	if err != nil {
		return "", err
	}
	for _, a := range append([]argument{
		{"audit-policy-file", kindAuditMount + "/" + auditPolicyFile},
		{"audit-log-path", kindAuditMount + "/" + auditLogFile},
	}, extra...) {
		add("apiServer", a)
	}
	for _, a := range append([]argument{{"controllers", kindControllers(s)}}, native...) {
		add("controllerManager", a)
	}
	patch = append(patch, operation{"add", "/apiServer/extraVolumes", []map[string]any{{
		"name": "auditing", "hostPath": kindAuditMount, "mountPath": kindAuditMount, "pathType": "DirectoryOrCreate",
	}}})
	text, err := json.Marshal(patch)
	return string(text), err
}

func kindControllers(s state) string {
	controllers := "*,bootstrap-signer-controller,token-cleaner-controller"
	if s.NativeQuota {
		return controllers
	}
	return controllers + "," + withoutQuota
}

func parseArguments(flags []string) ([]argument, error) {
	var list []argument
	for _, flag := range flags {
		name, value, found := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if !found || !strings.HasPrefix(flag, "--") {
			return nil, fmt.Errorf("extra argument %q: write --name=value", flag)
		}
		list = append(list, argument{Name: name, Value: value})
	}
	return list, nil
}
