#!/usr/bin/env bash
# Runs each fuzz target of this repository for a while:
#   hack/fuzz.sh [DURATION]
# go test takes one target at a time, so this finds them by their names.
set -euo pipefail

duration=${1:-30s}
cd "$(dirname "$0")/.."

targets=$(git grep --untracked -oE '^func Fuzz[A-Za-z0-9_]*' -- '*_test.go' | sed 's/:func / /') || {
	echo 'no fuzz target found' >&2
	exit 1
}
while read -r file target; do
	echo "fuzz $target in $(dirname "$file") for $duration"
	(cd "$(dirname "$file")" && go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" .)
done <<<"$targets"
