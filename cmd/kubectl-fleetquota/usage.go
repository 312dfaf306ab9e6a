package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetquota/fleetquota/cmd/kubectl-fleetquota/internal/manifest"
	"github.com/fleetquota/fleetquota/evaluator"
)

// newestRules is the version of Kubernetes whose rules apply by default.
const newestRules = "1.37"

// usageOptions are the flags of usage.
type usageOptions struct {
	*shell

	files      []string
	quotaFiles []string // empty: every amount, with no limit
	against    string   // NAMESPACE/NAME of a quota at the hub, in place of files
	asked      bool     // --against was given
	replaces   []string // files of what goes when the others come
	kubernetes string
	at         string // RFC 3339; empty: now
	expand     bool
	nodes      int // of each DaemonSet
	keepGoing  bool
	exitCode   bool
	output     string

	time        time.Time    // at, parsed
	home        string       // the namespace of objects that name none
	rulesChosen bool         // kubernetes was asked for
	stdin       bytes.Buffer // what has been read of standard input
}

func newUsage(s *shell) *cobra.Command {
	o := &usageOptions{shell: s}
	cmd := &cobra.Command{
		Use:   "usage -f FILE_OR_DIR...",
		Short: "Compute what the objects in files would use, and whether they fit",
		Long: `Computes what the objects in files would use of quotas, by the very code of the
hub. No cluster is contacted, unless --against names a quota at the hub. Objects
are taken as a server would store them, so that the limits of a container are its
requests where it has no others.

Without --quota it prints every amount by namespace. With --quota it prints the
ResourceQuotas and FleetQuotas of those files, with the status that their
controllers would give them; for a FleetQuota the files stand for one member.
It warns of objects that admission would refuse, and of quotas that are
exceeded.

With --against it says whether a global quota of the hub has room for the files:
for each resource what they would use, what is used, the limit, and what is then
left; and what each member uses. They are counted once, by the rules of each
member's version; where these differ, the answer is given for each. The objects
are taken as new: what is deployed already counts a second time, unless it is in
the files of --replaces, and then only the difference counts. Only objects in the
quota's namespace count, and those that name none. A resource of which the files
use nothing fits, even where its limit is exceeded. Numbers that are not known
are never taken as 0: "cannot tell" names them. -o json and yaml print the quota
as the hub would report it if a further member, files, held the objects; the
conclusion is then on standard error. Nothing is reserved or written.

Files may hold several documents, lists, and objects of any kind. Of directories
all *.yaml, *.yml and *.json in and below them are read, except for hidden ones.
An unknown kind is counted as count/PLURAL.GROUP: the plural is that of its
CustomResourceDefinition where that is in the files too, else a guess.

What is wrong with the input is told with file and line, and then nothing is
counted; with --keep-going the rest is. Either way the exit code is 1. With
--exit-code it is 2 when admission would refuse an object or a quota is exceeded,
and 1 when that cannot be said because an amount is unknown; with --against it is
2 unless the files fit in one member at least.

LimitRanges and default classes fill in what new objects leave open, where they
are in the files too. What else a cluster adds is not counted: what webhooks
inject, what operators create, and pods that a rolling update adds for a while.
-n is the namespace of objects that name none.`,
		Example: `  # What a directory of manifests uses, with the pods of its workloads
  kubectl fleetquota usage -f manifests/ --expand

  # Does it fit? Fail a pipeline if not
  helm template . | kubectl fleetquota usage -f - --expand --quota quota.yaml --exit-code

  # Has the hub's quota room for what is new since the last release?
  kubectl fleetquota usage -f manifests/ --replaces deployed/ --expand --against team-a/compute --exit-code

  # Recount a namespace from a dump, as Kubernetes 1.35 would at that time
  kubectl get pods,pvc,services -n team-a -o yaml > dump.yaml
  kubectl fleetquota usage -f dump.yaml --quota quota.yaml --kubernetes-version 1.35 --now 2026-01-01T12:00:00Z -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.rulesChosen, o.asked = cmd.Flags().Changed("kubernetes-version"), cmd.Flags().Changed("against")
			if err := o.complete(); err != nil {
				return err
			}
			if o.against != "" {
				return o.runAgainst(cmd.Context())
			}
			return o.run()
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *usageOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "files and directories of objects; - is standard input")
	f.StringSliceVar(&o.quotaFiles, "quota", nil, "files and directories of the quotas to fill in; other objects in them are not looked at")
	f.StringVar(&o.against, "against", "", "NAMESPACE/NAME of a global quota at the hub: whether it has room for the files, and where")
	f.StringSliceVar(&o.replaces, "replaces", nil, "with --against, files and directories of deployed objects that go when those of -f come")
	f.StringVar(&o.kubernetes, "kubernetes-version", newestRules, "count by the rules of this version, 1.34 to 1.37")
	f.StringVar(&o.at, "now", "", "the time, as 2026-01-01T12:00:00Z: a pod that is being deleted counts for its grace period only (default: now)")
	f.BoolVar(&o.expand, "expand", false, "count the pods and claims that workloads make when they run at full strength")
	f.IntVar(&o.nodes, "nodes", manifest.NodesUnknown, "on how many nodes each DaemonSet runs, with --expand (default: what its status says, else it is refused)")
	f.BoolVar(&o.keepGoing, "keep-going", false, "count what can be read even if something cannot")
	f.BoolVar(&o.exitCode, "exit-code", false, "exit with 2 when an object would be refused or a quota is exceeded, with --quota, or unless the files fit, with --against")
	f.StringVarP(&o.output, "output", "o", "", "wide, json or yaml")
	f.Lookup("nodes").DefValue = "0" // says that the help shall not print one
	completeFlag(cmd, "against", o.completeQuotaPaths)
	completeWords(cmd, "output", formatWide, formatJSON, formatYAML)
	completeWords(cmd, "kubernetes-version", "1.34", "1.35", "1.36", "1.37")
}

// complete checks the flags and fills in what follows from them.
func (o *usageOptions) complete() error {
	if err := oneOf("output", o.output, "", formatWide, formatJSON, formatYAML); err != nil {
		return err
	}
	switch {
	case len(o.files) == 0:
		return errors.New("nothing to count: name files or directories with -f, or - for standard input")
	case o.exitCode && len(o.quotaFiles) == 0 && o.against == "":
		return errors.New("--exit-code needs --quota or --against: without one nothing is limited")
	case o.nodes != manifest.NodesUnknown && !o.expand:
		return errors.New("--nodes needs --expand: without it no workload is expanded")
	case o.nodes < manifest.NodesUnknown:
		return fmt.Errorf("--nodes %d: a number of nodes is 0 or more", o.nodes)
	case !regexp.MustCompile(`^v?[0-9]+\.[0-9]+([.+-].*)?$`).MatchString(o.kubernetes):
		return fmt.Errorf("--kubernetes-version %q is no version: use one such as 1.37, v1.36.3 or 1.35+", o.kubernetes)
	case o.twiceStdin():
		return errors.New("standard input can be read only once: name - once")
	}
	o.home = *o.flags.Namespace
	if err := o.checkAgainst(); err != nil {
		return err
	}
	return o.completeTime()
}

// checkAgainst refuses flags that do not go together with one quota of the hub.
func (o *usageOptions) checkAgainst() error {
	switch {
	case o.asked && o.against == "":
		return errors.New("--against is empty: write NAMESPACE/NAME of a global quota")
	case o.against != "" && len(o.quotaFiles) > 0:
		return errors.New("use --against for a quota at the hub, or --quota for those in files, not both")
	case o.against == "" && len(o.replaces) > 0:
		return errors.New("--replaces needs --against: it asks how much more is used than before")
	}
	return nil
}

func (o *usageOptions) completeTime() error {
	o.time = o.now()
	if o.at == "" {
		return nil
	}
	var err error
	if o.time, err = time.Parse(time.RFC3339, o.at); err != nil {
		return fmt.Errorf("--now %q is no time: use one such as 2026-01-01T12:00:00Z", o.at)
	}
	return nil
}

func (o *usageOptions) twiceStdin() bool {
	n := 0
	for _, paths := range [][]string{o.files, o.quotaFiles, o.replaces} {
		for _, path := range paths {
			if path == "-" {
				n++
			}
		}
	}
	return n > 1
}

// run reads, expands, counts, answers, and shows.
func (o *usageOptions) run() error {
	rules := evaluator.NewSet(o.kubernetes, nil)
	if !rules.Exact() {
		o.warn("there are no rules for Kubernetes %s here: those of %s are used", o.kubernetes, rules.Rules())
	}
	input := o.read(o.files, rules.Rules())
	if o.expand {
		input.Expand(o.nodes)
	}
	quotas := o.readQuotas(rules.Rules())
	o.hint(input)

	tally := newTally(o.kubernetes, o.time, append(input.Objects, quotas.objects()...), input.Served())
	answers := tally.fill(quotas)

	bad := append(append(input.Bad, quotas.bad...), tally.bad...)
	o.tell(bad, append(input.Notes, quotas.notes...), answers)
	if len(bad) > 0 && !o.keepGoing {
		return fmt.Errorf("nothing is counted because of %s; --keep-going counts the rest", countOf(len(bad), "problem"))
	}
	if err := o.show(tally, answers); err != nil {
		return err
	}
	if len(bad) > 0 {
		return fmt.Errorf("not everything is counted: %s", countOf(len(bad), "problem"))
	}
	return o.verdict(answers)
}

func (o *usageOptions) read(paths []string, rules string) *manifest.Input {
	seen := bytes.NewReader(bytes.Clone(o.stdin.Bytes())) // other rules read the same again
	return manifest.Read(paths, manifest.Options{
		In:        io.MultiReader(seen, io.TeeReader(o.In, &o.stdin)),
		Namespace: o.home, Rules: rules,
	})
}

// hint says that workloads have pods, where none is counted.
func (o *usageOptions) hint(input *manifest.Input) {
	workloads := len(input.Workloads())
	if o.expand || workloads == 0 {
		return
	}
	for _, object := range input.Objects {
		if object.Kind.Kind == "Pod" {
			return
		}
	}
	o.warn("%s counted without pods: --expand adds them", isOrAre(workloads, "workload"))
}

// tell says on standard error what a person should know.
func (o *usageOptions) tell(bad, notes []manifest.Problem, answers []filled) {
	for _, problem := range bad {
		fmt.Fprintln(o.ErrOut, problem)
	}
	for _, note := range notes {
		o.warn("%s", note)
	}
	for i := range answers {
		for _, text := range answers[i].warnings() {
			o.warn("%s", text)
		}
	}
}

func (o *usageOptions) warn(format string, args ...any) {
	fmt.Fprintf(o.ErrOut, "warning: "+format+"\n", args...)
}

// verdict is the result for --exit-code.
func (o *usageOptions) verdict(answers []filled) error {
	if !o.exitCode {
		return nil
	}
	unknown := false
	for i := range answers {
		if len(answers[i].refused) > 0 || len(answers[i].over()) > 0 {
			return errAbove
		}
		unknown = unknown || len(answers[i].unknown()) > 0
	}
	if unknown {
		return errors.New("whether it fits cannot be said: an amount is unknown")
	}
	return nil
}

// countOf is a number of things in words.
func countOf(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// isOrAre is a number of things and the verb that goes with it.
func isOrAre(n int, thing string) string {
	if n == 1 {
		return countOf(n, thing) + " is"
	}
	return countOf(n, thing) + " are"
}
