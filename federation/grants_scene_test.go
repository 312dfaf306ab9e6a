package federation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// scene is a record and its members, between passes. A claim about it is two
// lines: the rows as "eu 2 of 5" (target 2, granted 5; ? for a resource that is
// not bounded), and what the last pass has sent.
type scene struct {
	*testing.T

	ids     int
	members map[string]*member
	read    map[string]localQuota
	record  federation.Record
	asked   federation.Observation
	pass    federation.Pass
}

// newScene has 10 pods to divide, and no record yet.
func newScene(t *testing.T, members ...string) *scene {
	t.Helper()
	s := &scene{T: t, members: map[string]*member{}, read: map[string]localQuota{}, record: federation.Record{ID: "r"}}
	s.asked.Limit = perKey{10, absent, absent}.list()
	for _, name := range members {
		s.members[name] = newMember(name)
	}
	return s
}

// withShares has members eu and us, with these shares of 10 in force.
func withShares(t *testing.T, eu, us int) *scene {
	t.Helper()
	s := newScene(t, "eu", "us")
	s.want("eu", eu)
	s.want("us", us)
	s.play()
	s.claim(fmt.Sprintf("eu %d of %d, us %d of %d", eu, eu, us, us), "")
	return s
}

// want says how many pods a member shall have.
func (s *scene) want(member string, pods int) {
	share := federation.Share{Cluster: member, Hard: perKey{pods, absent, absent}.list()}
	s.asked.Want = slices.DeleteFunc(s.asked.Want, func(other federation.Share) bool { return other.Cluster == member })
	s.asked.Want = append(s.asked.Want, share)
}

// release says that a member takes part no more.
func (s *scene) release(member string) {
	s.asked.Want = slices.DeleteFunc(s.asked.Want, func(other federation.Share) bool { return other.Cluster == member })
	s.asked.Release = append(s.asked.Release, member)
}

// lose replaces the record by one that knows only who may hold something.
func (s *scene) lose(members ...string) {
	s.record = federation.Record{ID: "other"}
	for _, name := range members {
		s.record.Spec.Members = append(s.record.Spec.Members, v1alpha1.Grant{Cluster: name, State: v1alpha1.Recovering})
	}
}

func (s *scene) newID() types.UID {
	s.ids++
	return types.UID(fmt.Sprint("q", s.ids))
}

// next is one pass over all members that can be reached.
func (s *scene) next() {
	s.asked.Seen = map[string]federation.Seen{}
	for name, m := range s.members {
		if !m.cut {
			s.asked.Seen[name], s.read[name] = m.see(), m.quota
		}
	}
	s.pass = s.record.Next(s.asked)
	s.record.Spec = s.pass.Spec
}

// arrive delivers what was sent, and lets every status follow.
func (s *scene) arrive() {
	for _, w := range s.pass.Writes {
		s.members[w.Cluster].take(&letter{Write: w, read: s.read[w.Cluster]}, s.newID)
	}
	for _, m := range s.members {
		m.sync()
	}
}

// play passes until there is nothing more to do.
func (s *scene) play() {
	s.Helper()
	for range 20 {
		before := s.record.Spec
		s.next()
		if len(s.pass.Writes) == 0 && sameSpec(before, s.pass.Spec) {
			return
		}
		s.arrive()
	}
	s.Fatalf("it goes on for ever: %s, %s", s.rows(), s.sent())
}

func (s *scene) claim(rows, sent string) {
	s.Helper()
	if s.rows() != rows || s.sent() != sent {
		s.Errorf("rows %q, want %q", s.rows(), rows)
		s.Errorf("sent %q, want %q", s.sent(), sent)
	}
}

func (s *scene) rows() string {
	var rows []string
	for _, row := range s.record.Spec.Members {
		rows = append(rows, strings.TrimSpace(fmt.Sprintf("%s %s of %s %s", row.Cluster, words(row.Target), words(row.Granted), row.State)))
	}
	return strings.Join(rows, ", ")
}

func (s *scene) sent() string {
	kinds := map[federation.WriteKind]string{
		federation.WritePatch: "patch", federation.WriteCreate: "create", federation.WriteRelease: "release", federation.WriteDelete: "delete",
	}
	var writes []string
	for _, w := range s.pass.Writes {
		text := w.Cluster + " " + kinds[w.Kind]
		if len(w.Set) > 0 {
			text += " " + words(w.Set)
		}
		for _, name := range w.Remove {
			text += " -" + string(name)
		}
		writes = append(writes, text)
	}
	return strings.Join(writes, ", ")
}

// words are the amounts of a list: pods first, then the others.
func words(l corev1.ResourceList) string {
	var all []string
	for _, n := range perKeyOf(l) {
		if n != absent {
			all = append(all, fmt.Sprint(n))
		}
	}
	if len(all) == 0 {
		return "?"
	}
	return strings.Join(all, "+")
}

// trouble is what keeps the members from their shares.
func (s *scene) trouble(want map[string]federation.Trouble) {
	s.Helper()
	if !maps.Equal(s.pass.Trouble, want) {
		s.Errorf("trouble %v, want %v", s.pass.Trouble, want)
	}
}
