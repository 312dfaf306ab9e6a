package synthetic

import "github.com/fleetquota/fleetquota/hack/bench/process"

// Address is where a member is, as the command fleet tells.
type Address struct {
	Name       string `json:"name"`
	URL        string `json:"url"`
	Kubeconfig string `json:"kubeconfig"` // a file
}

// Stats is what a fleet's process uses, and how much it has changed.
type Stats struct {
	process.Use

	Changes int64 `json:"changes"`
}
