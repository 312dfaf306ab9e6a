package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// shell is what every command has at hand.
type shell struct {
	genericiooptions.IOStreams

	flags    *genericclioptions.ConfigFlags // how to reach the hub
	now      func() time.Time
	patience time.Duration // how long a new token may take to work
}

// The exit codes besides 0.
const (
	exitError = 1
	exitAbove = 2 // with --exit-code: something is above its limit, or --over
)

// errAbove ends a command with exitAbove; it has said what it had to say.
var errAbove = errors.New("something is above --over")

// run runs one command line, args[0] being the program, to its exit code.
func run(ctx context.Context, args []string, s shell) int {
	root := newRoot(args[0], s) //nolint:contextcheck // commands are handed their context by cobra
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errAbove):
		return exitAbove
	default:
		fmt.Fprintln(s.ErrOut, "error:", err)
		return exitError
	}
}

// newRoot builds the tree of commands. The program is called as args[0] says:
// a plugin of kubectl shows itself as kubectl shows it.
func newRoot(program string, s shell) *cobra.Command {
	s.flags = genericclioptions.NewConfigFlags(true)
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	display := name
	if plugin, ok := strings.CutPrefix(name, "kubectl-"); ok {
		display = "kubectl " + plugin
	}
	root := &cobra.Command{
		Use:   name,
		Short: "Quotas over many clusters",
		Long: `Shows global quotas (FleetQuota) and the clusters that share them, and
registers clusters at the hub. The hub is the cluster of the current context,
or of --context.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: display},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.ErrOut)
	s.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(
		newGet(&s), newDescribe(&s), newWhy(&s), newClusters(&s),
		newJoin(&s), newLeave(&s), newUsage(&s), newVersion(&s),
	)
	addCompletion(root, &s)
	return root
}
