// Command fleetquota-hub sums what the member clusters of a fleet use and keeps
// the status of every quota. It is one process, with a standby or two.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"            // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/restclient" // rest_client_*
	_ "k8s.io/component-base/metrics/prometheus/workqueue"  // workqueue_*
)

func main() {
	os.Exit(cli.Run(newCommand()))
}
