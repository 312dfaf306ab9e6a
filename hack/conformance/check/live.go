package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fleetquota/fleetquota/hack/conformance/answer"
)

// Live builds upstream's evaluators of a minor version in a folder, compares so
// many objects with them, and says what they have covered. That the answers
// differ is an error that shows the smallest World to which they do.
func Live(ctx context.Context, minor, folder string, seed uint64, objects int) (Result, Coverage, error) {
	program, err := Build(ctx, minor, folder)
	if err != nil {
		return Result{}, nil, err
	}
	covered := filepath.Join(folder, "covered-v"+minor)
	if err := os.Mkdir(covered, 0o755); err != nil {
		return Result{}, nil, err
	}
	var result Result
	for _, v := range variants(minor) {
		if result, err = v.compare(ctx, program, covered, seed, objects); err != nil {
			return result, nil, err
		}
	}
	coverage, err := ReadCoverage(ctx, covered)
	return result, coverage, err
}

// variant is upstream's evaluators as they are by default, or with feature
// gates set, and the version whose rules ours then are.
type variant struct {
	gates, rules string
}

// variants is how a minor version is compared, as it is by default last. What
// 1.35 does behind a gate that is off is the rule of 1.36.
func variants(minor string) []variant {
	if minor == "1.35" {
		return []variant{{gates: "DRAExtendedResource=true", rules: "1.36"}, {rules: minor}}
	}
	return []variant{{rules: minor}}
}

func (v variant) compare(ctx context.Context, program, covered string, seed uint64, objects int) (Result, error) {
	upstream, err := Start(ctx, program, covered, v.gates)
	if err != nil {
		return Result{}, err
	}
	result, err := Compare(upstream, v.rules, seed, objects)
	if err != nil {
		return result, err
	}
	if result.Different != nil {
		return result, v.explain(ctx, program, covered, result.Different)
	}
	if err := upstream.Stop(); err != nil {
		return result, fmt.Errorf("upstream's evaluators: %w", err)
	}
	return result, nil
}

// explain shows how the answers to a World differ.
func (v variant) explain(ctx context.Context, program, covered string, world *answer.World) error {
	upstream, err := Start(ctx, program, covered, v.gates)
	if err != nil {
		return err
	}
	defer upstream.Stop() //nolint:errcheck // it has said what it had to say
	smallest, mine, theirs := Shrink(upstream, v.rules, world)
	return fmt.Errorf("the answers of fleetquota by the rules of %s and of %s %s differ:\n%s\n%s",
		v.rules, filepath.Base(program), v.gates, Diff(mine, theirs), YAML(smallest))
}
