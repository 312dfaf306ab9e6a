package fleet

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// Provider says what a cluster is made of.
type Provider string

// The providers.
const (
	Local Provider = "local" // processes on this machine
	Kind  Provider = "kind"  // nodes in Docker
)

// Spec says what one cluster should be.
type Spec struct {
	Name        string   // required; lower case letters, digits and dashes
	Version     string   // of Kubernetes; default Options.Version
	NativeQuota bool     // also run Kubernetes' own quota controller
	ExtraArgs   []string // more flags for kube-apiserver, --name=value each; they win
	NativeArgs  []string // the same for kube-controller-manager
}

type phase string

const (
	starting phase = "starting" // not yet ready, or whoever started it has crashed
	settled  phase = "settled"
)

// ports are kept for the whole life of a cluster.
type ports struct {
	API      int `json:"api"`
	Etcd     int `json:"etcd"`
	EtcdPeer int `json:"etcdPeer"`
	Manager  int `json:"manager"`
}

// state is what cluster.json holds. It is written before the first process of
// the cluster starts.
type state struct {
	Name        string   `json:"name"`
	Provider    Provider `json:"provider"`
	Version     string   `json:"version"`          // as in v1.37.2
	Assets      string   `json:"assets,omitempty"` // folder of prebuilt programs, if it uses such
	Ports       ports    `json:"ports"`
	NativeQuota bool     `json:"nativeQuota"`
	ExtraArgs   []string `json:"extraArgs,omitempty"`
	NativeArgs  []string `json:"nativeArgs,omitempty"`
	Phase       phase    `json:"phase"`
}

const stateFile = "cluster.json"

func (s state) save(dir string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, stateFile), append(text, '\n'))
}

func loadState(dir string) (state, error) {
	var s state
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", filepath.Join(dir, stateFile), err)
	}
	return s, nil
}

// replaceFile writes a file so that a reader sees the old text or the new one.
func replaceFile(path string, text []byte) error {
	temporary := path + ".tmp"
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func validName(name string) error {
	if len(name) > 40 || !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString(name) {
		return fmt.Errorf("cluster name %q: use at most 40 lower case letters, digits and dashes", name)
	}
	return nil
}

// The range to choose ports from: below what Linux hands out to outgoing
// connections, which would take the port of a stopped cluster, and below the
// node ports of services.
const (
	firstPort = 20000
	portRange = 9000
)

// choosePorts finds free ports. The search starts at a place given by the
// folder, so that fleets in different folders seldom meet.
func choosePorts(dir string, taken []ports) (ports, error) {
	var used []int
	for _, p := range taken {
		used = append(used, p.API, p.Etcd, p.EtcdPeer, p.Manager)
	}
	start := int(hashOf(dir) % portRange)

	var found []int
	for i := 0; i < portRange && len(found) < 4; i++ {
		port := firstPort + (start+i)%portRange
		if !slices.Contains(used, port) && portIsFree(port) {
			found = append(found, port)
		}
	}
	if len(found) < 4 {
		return ports{}, fmt.Errorf("no four free ports between %d and %d", firstPort, firstPort+portRange)
	}
	return ports{API: found[0], Etcd: found[1], EtcdPeer: found[2], Manager: found[3]}, nil
}

func hashOf(text string) uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(text)) // never fails
	return hash.Sum32()
}

func portIsFree(port int) bool {
	listener, err := net.Listen("tcp", loopback(port)) //nolint:noctx // returns at once
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
