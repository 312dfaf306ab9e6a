// Command fleet plays a fleet of member clusters for the hub, until its input
// ends or it is told to.
//
// What it reads are commands, one a line, and each is answered by a line of JSON:
//
//	churn N   change N pods in a second from now on
//	truth     what each namespace uses in all members together
//	stats     what this process uses, and how much it has changed
//	quit
//
// The first line that it writes says where the members are.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/fleetquota/fleetquota/hack/bench/process"
	"github.com/fleetquota/fleetquota/hack/bench/synthetic"
)

func main() {
	var o synthetic.Options
	var dir string
	flag.IntVar(&o.Members, "members", 3, "how many members")
	flag.IntVar(&o.Pods, "pods", 1000, "how many pods in each")
	flag.IntVar(&o.Namespaces, "namespaces", 10, "over how many namespaces")
	flag.IntVar(&o.Services, "services", 2, "how many services in each namespace")
	flag.BoolVar(&o.Quotas, "quotas", false, "a ResourceQuota in each namespace")
	flag.IntVar(&o.History, "history", 0, "how many events a watch can go back; default 20000")
	flag.Uint64Var(&o.Seed, "seed", 1, "what chance decides follows from this")
	flag.StringVar(&dir, "dir", "", "folder for the kubeconfigs; default one that is removed at the end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, dir)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// run plays the fleet until ctx or the input ends.
func run(ctx context.Context, o synthetic.Options, dir string) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "fleetquota-synthetic-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	f, err := synthetic.Start(ctx, o)
	if err != nil {
		return err
	}
	defer f.Close()
	members, err := writeKubeconfigs(f, dir)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(members); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- obey(f, os.Stdin, out) }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

func writeKubeconfigs(f *synthetic.Fleet, dir string) ([]synthetic.Address, error) {
	var members []synthetic.Address
	for _, m := range f.Members {
		kubeconfig, err := f.Kubeconfig(m)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, m.Name+".kubeconfig")
		if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
			return nil, err
		}
		members = append(members, synthetic.Address{Name: m.Name, URL: m.URL, Kubeconfig: path})
	}
	return members, nil
}

// obey follows commands until there are no more.
func obey(f *synthetic.Fleet, in io.Reader, out *json.Encoder) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if lines.Text() == "quit" {
			return nil
		}
		answer, err := command(f, lines.Text())
		if err != nil {
			answer = map[string]string{"error": err.Error()}
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func command(f *synthetic.Fleet, line string) (any, error) {
	name, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch name {
	case "churn":
		rate, err := strconv.Atoi(argument)
		if err != nil || rate < 0 {
			return nil, fmt.Errorf("churn %q: how many a second?", argument)
		}
		f.Churn(rate)
		return map[string]int{"churn": rate}, nil
	case "truth":
		return f.Truth(), nil
	case "stats":
		use, err := process.Of(os.Getpid())
		return synthetic.Stats{Use: use, Changes: f.Changes()}, err
	}
	return nil, fmt.Errorf("unknown command %q: churn N, truth, stats or quit", name)
}
