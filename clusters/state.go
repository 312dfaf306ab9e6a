package clusters

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Member is what the hub says of one cluster. It is a value: nobody changes it
// or its labels.
type Member struct {
	Name        string
	Secret      types.NamespacedName // zero: the hub itself
	Labels      map[string]string    // of the Secret, without those that only mark or manage it
	LocalStatus string               // the annotation fleetquota.io/local-status, as written
	Paused      bool
}

// Equal says whether two descriptions of members are the same.
func (m Member) Equal(o Member) bool {
	return m.Name == o.Name && m.Secret == o.Secret && m.LocalStatus == o.LocalStatus &&
		m.Paused == o.Paused && maps.Equal(m.Labels, o.Labels)
}

// Reach says whether a member answers.
type Reach string

// The reaches of a member.
const (
	Never       Reach = "Never"       // it has not answered yet
	Live        Reach = "Live"        // it answered within Options.StaleAfter
	Stale       Reach = "Stale"       // it last answered longer ago than that
	Unreachable Reach = "Unreachable" // it last answered longer ago than Options.UnreachableAfter
)

// State is what is known of one member's connection.
type State struct {
	Member      Member
	Reach       Reach
	LastContact time.Time // of the last successful probe; zero: never
	UID         types.UID // of kube-system
	Version     string    // gitVersion

	// Reason and Message say why the member is not live, or live and not
	// engaged. Empty when all is well.
	Reason, Message string

	// CredentialsReason and CredentialsMessage say why the kubeconfig of the
	// Secret is refused by the hub or the member. Empty: it is valid. An older
	// kubeconfig that was valid may still be in use.
	CredentialsReason, CredentialsMessage string

	CredentialsExpire time.Time     // of those in use; zero: unknown
	ClockOffset       time.Duration // the member's clock minus the hub's, to the second
}

// clockNoise is the least move of a member's clock that counts as one: its
// readings are good to a second.
const clockNoise = 2 * time.Second

// Equal says whether two states are the same to somebody who acts on them. The
// last contact of a member that is live both times is not compared, since it
// moves with every probe, and neither is a move of its clock below two seconds.
func (s State) Equal(o State) bool {
	if s.Reach != o.Reach || (s.Reach != Live && !s.LastContact.Equal(o.LastContact)) {
		return false
	}
	if (s.ClockOffset - o.ClockOffset).Abs() >= clockNoise {
		return false
	}
	return s.UID == o.UID && s.Version == o.Version &&
		s.Reason == o.Reason && s.Message == o.Message &&
		s.CredentialsReason == o.CredentialsReason && s.CredentialsMessage == o.CredentialsMessage &&
		s.CredentialsExpire.Equal(o.CredentialsExpire) && s.Member.Equal(o.Member)
}
