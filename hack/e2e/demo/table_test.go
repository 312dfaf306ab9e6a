package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func quota(ns, name string, hard, used corev1.ResourceList, parts ...v1alpha1.ClusterUsage) v1alpha1.FleetQuota {
	q := v1alpha1.FleetQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	q.Spec.Hard, q.Status.Used, q.Status.Clusters = hard, used, parts
	return q
}

func part(name string, phase v1alpha1.Phase, used corev1.ResourceList) v1alpha1.ClusterUsage {
	return v1alpha1.ClusterUsage{Name: name, Phase: phase, Used: used}
}

func member(name string, phase v1alpha1.Phase) v1alpha1.FleetMember {
	m := v1alpha1.FleetMember{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Status.Phase = phase
	return m
}

func sample() picture {
	return picture{
		quotas: []v1alpha1.FleetQuota{
			quota("team-data", "volumes", list("requests.storage", "120Gi"), list("requests.storage", "70Gi"),
				part("eu-1", v1alpha1.Live, list("requests.storage", "70Gi"))),
			quota("team-shop", "compute", list("pods", "23", "requests.cpu", "8"), list("pods", "25", "requests.cpu", "7600m"),
				part("ap-1", v1alpha1.Stale, list("pods", "5", "requests.cpu", "1600m")),
				part("eu-1", v1alpha1.Live, list("pods", "20", "requests.cpu", "6"))),
		},
		members: []v1alpha1.FleetMember{member("ap-1", v1alpha1.Stale), member("eu-1", v1alpha1.Live)},
		news:    []string{"latest:  eu-1: a pod starts"},
		hint:    []string{"Try:", "  fleet freeze us-1"},
	}
}

func TestTheTable(t *testing.T) {
	p := sample()
	last := metav1.NewTime(time.Date(2026, 1, 2, 12, 30, 15, 0, time.Local))
	p.members[0].Status.LastContactTime = &last
	compare(t, p.text(window{}), `
NAMESPACE  QUOTA    RESOURCE          USED     HARD    USED%  STATE        AP-1          EU-1
team-data  volumes  requests.storage  70Gi     120Gi   58%    ok           -             70Gi
team-shop  compute  pods              25       23      108%   exceeded     5 !stale      20
team-shop  compute  requests.cpu      7600m    8       95%    almost full  1600m !stale  6

members: ap-1 stale, last answer 12:30:15 | eu-1 live
latest:  eu-1: a pod starts

Try:
  fleet freeze us-1
`)
}

func TestANarrowWindowHasQuotasAsHeadings(t *testing.T) {
	compare(t, sample().text(window{columns: 60}), `
RESOURCE          USED  HARD  USED% STATE       AP-1   EU-1
team-data/volumes
 requests.storage 70Gi  120Gi 58%   ok          -      70Gi
team-shop/compute
 pods             25    23    108%  exceeded    !5     20
 requests.cpu     7600m 8     95%   almost full !1600m 6

members: ap-1 stale | eu-1 live
latest:  eu-1: a pod starts

Try:
  fleet freeze us-1
`)
}

func TestALowWindowLeavesOutWhatIsOk(t *testing.T) {
	compare(t, sample().text(window{columns: 120, rows: 10}), `
NAMESPACE  QUOTA    RESOURCE          USED     HARD    USED%  STATE        AP-1          EU-1
team-shop  compute  pods              25       23      108%   exceeded     5 !stale      20
... 2 more rows: make the window higher

members: ap-1 stale | eu-1 live
latest:  eu-1: a pod starts

Try:
  fleet freeze us-1
`)
}

func compare(t *testing.T, got, want string) {
	t.Helper()
	expected := strings.TrimPrefix(want, "\n")
	if got != expected {
		t.Errorf("got\n%s\nwant\n%s", got, expected)
	}
}

func TestTheHintStaysAndNothingIsWiderThanTheWindow(t *testing.T) {
	for columns := 30; columns < 130; columns += 7 {
		for rows := 10; rows < 30; rows += 3 {
			text := sample().text(window{columns: columns, rows: rows, colors: true})
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			if lines[len(lines)-1] != "  fleet freeze us-1" {
				t.Errorf("%dx%d: ends in %q", columns, rows, lines[len(lines)-1])
			}
			if height(lines, columns) >= max(rows, minRows+8) {
				t.Errorf("%dx%d: %d rows:\n%s", columns, rows, height(lines, columns), text)
			}
			for _, line := range lines[:len(lines)-6] {
				if visible(line) > columns {
					t.Errorf("%dx%d: %q is %d wide", columns, rows, line, visible(line))
				}
			}
		}
	}
}

func TestColoursAreNeverAlone(t *testing.T) {
	plainText := sample().text(window{columns: 120})
	coloured := sample().text(window{columns: 120, colors: true})
	if strings.Contains(plainText, "\x1b") {
		t.Errorf("escape codes without colours: %q", plainText)
	}
	var stripped strings.Builder
	escaped := false
	for _, r := range coloured {
		escaped = escaped || r == '\x1b'
		if !escaped {
			stripped.WriteRune(r)
		}
		escaped = escaped && r != 'm'
	}
	if stripped.String() != plainText {
		t.Errorf("got\n%s\nwant\n%s", stripped.String(), plainText)
	}
}

func TestStates(t *testing.T) {
	for want, q := range map[string]v1alpha1.FleetQuota{
		"unknown":     quota("a", "b", list("pods", "10"), nil),
		"ok":          quota("a", "b", list("pods", "10"), list("pods", "9")),
		"almost full": quota("a", "b", list("pods", "10"), list("pods", "9100m")),
		"full":        quota("a", "b", list("pods", "10"), list("pods", "10")),
		"exceeded":    quota("a", "b", list("pods", "10"), list("pods", "11")),
	} {
		if got := stateOf(&q, "pods"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	nothing := quota("a", "b", list("pods", "0"), list("pods", "0"))
	if got := stateOf(&nothing, "pods"); got != stateOK {
		t.Errorf("0 of 0: got %s, want ok, as the command line says", got)
	}
}

func TestMemberCells(t *testing.T) {
	partial := part("m", v1alpha1.Partial, list("pods", "3", "services", "2"))
	partial.Unknown = []corev1.ResourceName{"services"}
	for want, c := range map[string]struct {
		key  corev1.ResourceName
		part v1alpha1.ClusterUsage
	}{
		"-":              {"pods", part("other", v1alpha1.Live, nil)},
		"3":              {"pods", partial},
		"2 !partial":     {"services", partial},
		"!unknown":       {"secrets", partial},
		"!never synced":  {"pods", part("m", v1alpha1.NeverSynced, nil)},
		"4 !unreachable": {"pods", part("m", v1alpha1.Unreachable, list("pods", "4"))},
	} {
		q := quota("a", "b", list("pods", "10"), nil, c.part)
		if got := memberCell(&q, c.key, "m").text; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAPipeGetsATableForEachChangeAndTheHintOnce(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	p := sample()
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	show := func(after time.Duration) {
		t.Helper()
		if err := s.show(p, now.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	show(0)
	show(10 * time.Second) // nothing new
	p.news = []string{"only news"}
	show(20 * time.Second)
	p.quotas[0].Status.Used = list("requests.storage", "80Gi")
	show(30 * time.Second)
	p.quotas[0].Status.Used = list("requests.storage", "90Gi")
	show(30*time.Second + 300*time.Millisecond) // too early
	show(32 * time.Second)
	text := out.String()
	if got := strings.Count(text, "NAMESPACE"); got != 3 {
		t.Errorf("got %d tables, want 3:\n%s", got, text)
	}
	if got := strings.Count(text, "fleet freeze"); got != 1 {
		t.Errorf("got the hint %d times, want once", got)
	}
	if strings.Contains(text, "\x1b") || !utf8.ValidString(text) {
		t.Errorf("escape codes in %q", text)
	}
}

func TestParse(t *testing.T) {
	for line, want := range map[string]string{
		"":                  "up or down?",
		"sideways":          `unknown command "sideways"`,
		"up now":            `unknown argument "now"`,
		"up --for=-1s":      "--for -1s is negative",
		"down --for 1s":     "flag provided but not defined: -for",
		"up --for 90s":      "",
		"down":              "",
		"up --for tomorrow": `invalid value "tomorrow" for flag -for: parse error`,
	} {
		_, _, err := parse(strings.Fields(line))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

func TestTheSamplesAreReadable(t *testing.T) {
	files, err := samples.ReadDir("sample")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := samples.ReadFile("sample/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decode(text)
		if err != nil || len(objects) == 0 {
			t.Errorf("%s: %d objects, %v", file.Name(), len(objects), err)
		}
	}
}
