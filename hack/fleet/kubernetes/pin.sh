#!/usr/bin/env bash
# Writes the module that pins what `fleet` builds for one version of Kubernetes:
#   hack/fleet/kubernetes/pin.sh v1.37.2
# Each minor version has a folder of its own, since each needs its own
# replacements of the staging modules and its own etcd.
set -euo pipefail

version=${1:?usage: pin.sh vX.Y.Z}
minor=${version%.*}
cd "$(dirname "$0")"
mkdir -p "$minor"
cd "$minor"

upstream=$(cd / && go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)",*/\1/p')
staging=v0.${version#v1.}
rm -f go.sum
{
	echo "module github.com/fleetquota/fleetquota/hack/fleet/kubernetes/$minor"
	echo
	sed -n 's/^go /go /p' "$upstream"
	echo
	echo "require k8s.io/kubernetes $version"
	echo
	echo 'replace ('
	sed -n "s|^\t\(k8s.io/[a-z0-9-]*\) => ./staging/.*|\t\1 => \1 $staging|p" "$upstream"
	echo ')'
} >go.mod
cat >pin.go <<'GO'
//go:build pin

// Package pin names the programs that fleet builds from this module.
package pin

import (
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)
GO
go mod tidy
