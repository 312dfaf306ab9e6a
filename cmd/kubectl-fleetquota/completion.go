package main

import (
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addCompletion adds the completion command, and says how kubectl is made to
// complete a plugin.
func addCompletion(root *cobra.Command, s *shell) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Long += `

kubectl completes its plugins with an executable of its own for each. For
"kubectl fleetquota", put this into a file named kubectl_complete-fleetquota
on your PATH and make it executable:

  #!/bin/sh
  exec kubectl-fleetquota __complete "$@"`
		}
	}
	completeFlag(root, "namespace", s.completeNone)
	completeFlag(root, "context", s.completeContexts)
}

// completeFlag sets how the value of a flag is completed.
func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	// It fails only for a flag that does not exist, or when set twice: both
	// are found by the first test that builds the commands.
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}

// completeWords completes the value of a flag to one of a few words.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	completeFlag(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func (*shell) completeNone(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeQuotas completes the names of global quotas of the namespace.
func (s *shell) completeQuotas(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	hub, err := s.hub()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	namespace, err := s.namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list, err := hub.Quotas(namespace).List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeQuotaPaths completes global quotas as NAMESPACE/NAME, and by name
// alone where the namespace is given.
func (s *shell) completeQuotaPaths(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if *s.flags.Namespace != "" {
		return s.completeQuotas(cmd, args, begun)
	}
	hub, err := s.hub()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := hub.Quotas(metav1.NamespaceAll).List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return s.completeQuotas(cmd, args, begun) // who may not see all namespaces
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, keyOf(&list.Items[i]))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeMembers completes the names of members.
func (s *shell) completeMembers(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	hub, err := s.hub()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := hub.Members().List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeContexts completes the contexts of the kubeconfig.
func (s *shell) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	raw, err := s.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := make([]string, 0, len(raw.Contexts))
	for name := range raw.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}
