package evaluator

import (
	"fmt"
	"strconv"
	"strings"

	resourcehelper "k8s.io/component-helpers/resource"
)

// The minor versions of Kubernetes 1 whose rules are known.
const (
	oldestMinor = 34
	newestMinor = 37
)

// rules is what differs between minor versions of Kubernetes.
type rules struct {
	minor int
	// resources says how a pod's requests and limits are summed.
	resources resourcehelper.PodResourcesOptions
}

// version is the minor version that the rules are those of.
func (r rules) version() string {
	return fmt.Sprintf("1.%d", r.minor)
}

// rulesFor chooses the rules for a version, and says whether they are that
// version's own. For now every minor version charges as the newest does.
func rulesFor(version string) (chosen rules, exact bool) {
	minor, understood := parseMinor(version)
	nearest := min(max(minor, oldestMinor), newestMinor)
	return rules{
		minor: nearest,
		resources: resourcehelper.PodResourcesOptions{
			UseStatusResources: true, // a resized pod costs what it asks for or what it still holds, whichever is more
		},
	}, understood && nearest == minor
}

// parseMinor reads the minor version out of "v1.37.2", "1.36+" or "1.34.4-eks".
// Another major version is a minor version before all or after all of 1; so is a
// version that is not understood, because new clusters are likelier than old.
func parseMinor(version string) (minor int, understood bool) {
	const before, after = 0, newestMinor + 1
	major, rest, found := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if !found {
		return after, false
	}
	digits := rest
	if end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = rest[:end]
	}
	minor, err := strconv.Atoi(digits)
	if err != nil {
		return after, false
	}
	switch major {
	case "0":
		return before, true
	case "1":
		return minor, true
	}
	return after, false
}
