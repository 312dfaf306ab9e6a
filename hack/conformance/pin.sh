#!/usr/bin/env bash
# Writes the go.mod of the program that answers for one version of Kubernetes:
#   hack/conformance/pin.sh v1.37.2
# Each minor version has a folder of its own, since each needs its own
# replacements of the staging modules. Record the answers anew afterwards.
set -euo pipefail

version=${1:?usage: pin.sh vX.Y.Z}
minor=${version%.*}
cd "$(dirname "$0")/$minor"

upstream=$(cd / && go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)",*/\1/p')
staging=v0.${version#v1.}
rm -f go.sum
{
	echo "module github.com/fleetquota/fleetquota/hack/conformance/$minor"
	echo
	sed -n 's/^go /go /p' "$upstream"
	echo
	echo "require k8s.io/kubernetes $version"
	echo
	echo 'replace ('
	printf '\tgithub.com/fleetquota/fleetquota/hack/conformance/answer => ../answer\n'
	sed -n "s|^\t\(k8s.io/[a-z0-9-]*\) => ./staging/.*|\t\1 => \1 $staging|p" "$upstream"
	echo ')'
} >go.mod
go mod tidy
