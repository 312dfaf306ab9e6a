package clusters

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Host acts on members. The methods of one member are never called concurrently
// with each other, except Observe during Engage. A method that blocks holds up
// its own member alone.
type Host interface {
	// Engage works on the member until ctx ends. What it started is gone when it
	// returns. When it returns earlier it is called again: at once if it returns
	// nil to begin anew, else after a back-off. The text of an error is shown in
	// the State and logged: see [Explain].
	Engage(ctx context.Context, c *Connection) error
	// Observe is told the state of the member's connection when it changed.
	Observe(ctx context.Context, s State)
	// Gone follows the last Observe of a member that exists no more.
	Gone(ctx context.Context, name string)
	// Refuse is told of a Secret that cannot be any member, when it became so or
	// the reason changed.
	Refuse(ctx context.Context, secret types.NamespacedName, reason, message string)
}

// Source says which members exist. One that is a [Rereader] is also asked to
// look again when a member refuses its credentials.
type Source interface {
	// Run tells the sink of every member, until ctx ends. A source that ends
	// earlier with an error ends Serve.
	Run(ctx context.Context, sink Sink) error
}

// Rereader is a Source that can look again at one Secret at once, and tells its
// sink what it found.
type Rereader interface {
	Reread(ctx context.Context, secret types.NamespacedName) error
}

// Sink is told by a Source which members exist. Its methods do not block and
// may be called concurrently.
type Sink interface {
	// Offer says that a member exists, in place of what was said of it before.
	Offer(o Offer)
	// Withdraw says that the member exists no more.
	Withdraw(name string)
	// Refuse says that a Secret cannot be any member.
	Refuse(secret types.NamespacedName, reason, message string)
	// Listed says that every member that existed at the start has been offered.
	Listed()
}

// Offer is all that a Source says of one member.
type Offer struct {
	Member Member
	// Since is the age of the registration: of two names of one cluster the
	// older one is served.
	Since time.Time
	// Login is how to reach the member. nil: Refusal says why there is none, and
	// the login of the offer before stays in use.
	Login   *Login
	Refusal *Refusal
}
