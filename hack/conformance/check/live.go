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
	upstream, err := Start(ctx, program, covered)
	if err != nil {
		return Result{}, nil, err
	}
	result, err := Compare(upstream, minor, seed, objects)
	if err != nil {
		return result, nil, err
	}
	if result.Different != nil {
		return result, nil, explain(ctx, program, minor, folder, result.Different)
	}
	if err := upstream.Stop(); err != nil {
		return result, nil, fmt.Errorf("upstream's evaluators of %s: %w", minor, err)
	}
	if minor == "1.35" {
		if err := exercise(ctx, program, covered, seed, objects); err != nil {
			return result, nil, fmt.Errorf("upstream's evaluators of %s with more features: %w", minor, err)
		}
	}
	coverage, err := ReadCoverage(ctx, covered)
	return result, coverage, err
}

// exercise runs what is behind a feature gate that is off by default. Nothing is
// compared: only the default is counted as upstream does it.
func exercise(ctx context.Context, program, covered string, seed uint64, objects int) error {
	const enough = 50_000
	upstream, err := Start(ctx, program, covered, "DRAExtendedResource=true")
	if err != nil {
		return err
	}
	if err := Exercise(upstream, seed, min(objects, enough)); err != nil {
		return err
	}
	return upstream.Stop()
}

// explain shows how the answers to a World differ.
func explain(ctx context.Context, program, minor, folder string, world *answer.World) error {
	upstream, err := Start(ctx, program, folder)
	if err != nil {
		return err
	}
	defer upstream.Stop() //nolint:errcheck // it has said what it had to say
	smallest, mine, theirs := Shrink(upstream, minor, world)
	return fmt.Errorf("the answers of fleetquota and Kubernetes %s differ:\n%s\n%s", minor, Diff(mine, theirs), YAML(smallest))
}
