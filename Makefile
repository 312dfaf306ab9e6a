# Everything here needs Go, make and git, and nothing else. Tools are built from hack/tools when first used.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 30s
RUN ?=
SHORT ?=
BENCHSTAT ?=
TABLE ?=
FOR ?=

TOOLS := $(CURDIR)/bin/tools
GOLANGCI_LINT := $(TOOLS)/golangci-lint
CONTROLLER_GEN := $(TOOLS)/controller-gen
LOGCHECK := $(TOOLS)/logcheck

# Each go.mod is a module of its own. Those in hack/fleet/kubernetes only pin what hack/fleet builds: pin.sh writes them whole, and
# tidying them here would download four releases of Kubernetes. Those in hack/conformance/v* pin the same releases.
MODULES := $(patsubst %/go.mod,%,$(wildcard ./go.mod hack/*/go.mod hack/conformance/answer/go.mod))
CODE := $(filter-out hack/tools,$(MODULES))

# These packages have goroutines. The race detector needs a C compiler, so without one the tests run without it. federation/model
# looks at millions of states, which the detector would make slow, and its tests run without it.
CONCURRENT := ./evaluator/wire ./federation ./federation/v1alpha1/... ./clusters/... ./controller/...
RACE := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

##@ Use

.PHONY: help
help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build both programs into bin/
	go build -ldflags '-X main.version=$(VERSION)' -o bin/ ./cmd/...

.PHONY: demo
demo: ## start a hub, three members and sample teams on this machine, and show live totals; 10 min the first time, for Kubernetes is built
	@echo 'Building the demo (usually a second; 2 minutes the first time)'
	@cd hack/e2e && go run ./demo up $(if $(FOR),--for $(FOR))

.PHONY: demo-down
demo-down: ## stop the demo and remove what it left
	@cd hack/e2e && go run ./demo down

##@ Check

.PHONY: test
test: ## run all tests that need no Docker, short end-to-end tests last; 15 min the first time, for Kubernetes is built
	go test $(RACE) $(CONCURRENT)
	go test -run '^TestGrant' ./federation # the race detector would make these slow, and with it they do little
	go test $$(go list ./... | grep -vxF "$$(go list $(CONCURRENT))")
	cd hack/gen && go test ./...
	cd hack/fleet && go run . build && go test -timeout 20m ./...
	cd hack/conformance && go test -timeout 20m ./...
	cd hack/bench && go test -timeout 20m ./...
	cd hack/e2e && go test -short -timeout 40m ./...

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME=30s
	hack/fuzz.sh $(FUZZTIME)

.PHONY: model
model: ## search a larger model of the grant protocol for a broken promise, 3 members and 2 keys; 10 min at most
	MODEL_LONG=1 go test -count=1 -timeout 20m -v -run TestLongSearch ./federation/model

.PHONY: conformance
conformance: ## compare 1,000,000 objects per version with the evaluators of Kubernetes 1.34 to 1.37; 25 min the first time, for they are built
	cd hack/conformance && go run .

.PHONY: conformance-record
conformance-record: # when the objects that the tests make, or the releases of Kubernetes, have changed
	cd hack/conformance && go run . -record -versions 1.34,1.35,1.36

.PHONY: lint
lint: $(GOLANGCI_LINT) $(LOGCHECK) ## run golangci-lint and logcheck over all modules; 5 min the first time, for the linter is built
	@for module in $(CODE); do \
		echo "lint $$module"; \
		(cd $$module && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./... && $(LOGCHECK) -check-contextual ./...) || exit 1; \
	done

.PHONY: generate
generate: $(CONTROLLER_GEN) ## write deepcopy functions and CRDs from the API types, and draw the measurements in docs/growth
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./federation/v1alpha1
	$(CONTROLLER_GEN) crd paths=./federation/v1alpha1 output:crd:dir=deploy/crds
	cd hack/gen && go run . ../../deploy/crds/fleetquota.io_*.yaml
	cd hack/bench && go run ./growth ../../docs/growth

.PHONY: tidy
tidy:
	@for module in $(MODULES); do echo "tidy $$module"; (cd $$module && go mod tidy) || exit 1; done

.PHONY: format
format: $(GOLANGCI_LINT)
	$(GOLANGCI_LINT) fmt

# One after the other, since each writes what the next one reads.
.PHONY: verify
verify: ## generate, tidy, format and lint, and fail if that leaves a difference to what is committed
	@$(MAKE) generate
	@$(MAKE) tidy
	@$(MAKE) format
	@$(MAKE) lint
	@new=$$(git ls-files --others --exclude-standard); if [ -n "$$new" ]; then printf 'not committed:\n%s\n' "$$new" >&2; exit 1; fi
	git diff --exit-code

##@ Check on real clusters

.PHONY: e2e
e2e: ## run the end-to-end tests in full; RUN=regexp selects; 20 min
	cd hack/e2e && go test -count=1 -timeout 40m -v -run '$(RUN)' ./...

.PHONY: e2e-faults
e2e-faults: ## run the end-to-end tests that break things: killed, frozen and cut-off members and hubs
	@$(MAKE) e2e RUN=Fault

.PHONY: e2e-kind
e2e-kind: ## run the end-to-end tests on clusters made by kind; needs Docker
	@FLEET_PROVIDER=kind $(MAKE) e2e

.PHONY: e2e-ui
e2e-ui: # in the list once there are pages
	@echo 'there are no pages to test yet: the dashboard is still to come' >&2; exit 1

BENCH := $(if $(SHORT),-short) $(if $(BENCHSTAT),-benchstat $(abspath $(BENCHSTAT)))

.PHONY: bench
bench: ## measure beside upstream's code, PASS or MISS per figure; 20 min, or 3 with SHORT=1; BENCHSTAT=FILE and TABLE=FILE write it down
	@rows=$$(mktemp) && trap 'rm -f "$$rows"' EXIT && \
		(cd hack/e2e && go run ./bench $(BENCH) -rows "$$rows") && \
		cd hack/bench && go run . $(BENCH) $(if $(TABLE),-document $(abspath $(TABLE))) -after "$$rows"

.PHONY: growth
growth: ## measure how cost grows with sizes, and draw docs/growth; 10 min
	cd hack/e2e && go run ./bench -growth $(CURDIR)/docs/growth
	cd hack/bench && go run . -growth $(CURDIR)/docs/growth
	cd hack/bench && go run ./growth $(CURDIR)/docs/growth

##@ Clean

.PHONY: clean
clean: ## remove bin/, and with it the built tools and Kubernetes
	rm -rf bin

$(GOLANGCI_LINT): hack/tools/go.mod
	cd hack/tools && go build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(CONTROLLER_GEN): hack/tools/go.mod
	cd hack/tools && go build -o $@ sigs.k8s.io/controller-tools/cmd/controller-gen

$(LOGCHECK): hack/tools/go.mod
	cd hack/tools && go build -o $@ sigs.k8s.io/logtools/logcheck
