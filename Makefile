# The two commands: `make run` and `make test`. What they build lies under target/, and what outlives a checkout in
# ${XDG_CACHE_HOME:-~/.cache}/muster: compiled dependencies, the programs of the test bed, cargo-deny.

CARGO ?= cargo
FAULT_SEEDS ?= 400
# Tests that run at the same time, on two cores: many of them wait for processes or for a cluster, which takes 600 MB.
UNIT_THREADS ?= 3
CLUSTER_THREADS ?= 3
# Seconds of `make fuzz` for each target.
FUZZ_SECONDS ?= 600
# Of `make image`: a release, and what it is called.
RELEASE ?=
VERSION ?= $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
# All of the workspace with all features, always: parts of it alone would be other builds of everything below them.
ALL = --workspace --all-features
TARGET = $(or $(CARGO_TARGET_DIR),target)
BUILT = $(TARGET)/debug
# Every test program but those that need a cluster.
UNIT = --lib --bins --test '[!c]*'
# What `make test` is, in this order.
PARTS = lint build deny unit cluster faults examples

.PHONY: help run test release compiled build lint deny notices sbom attempts docs reference picture image unit built cluster \
    faults examples fuzz bench clean

help: ## Say what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1|/' | column -t -s '|'

run: compiled ## Run examples/quickstart.yaml: real workers on simulated nodes, in about a minute
	@$(CARGO) run --quiet --package muster-cli -- run --logs examples/quickstart.yaml

test: compiled ## Everything CI runs, and how long each part took
	@MAKE="$(MAKE)" sh .ci/parts $(PARTS)
	@sh .ci/compiled keep

compiled:
	@sh .ci/compiled take

release: ## Both binaries as they are shipped: stripped, with debug information beside them, in target/dist
	$(CARGO) build --profile shipped --locked --package muster-kube --package muster-cli --bins
	@sh image/strip.sh $(TARGET)/dist $(TARGET)/shipped/muster $(TARGET)/shipped/muster-controller

build: ## Compile every program and every test, in one go
	$(CARGO) build $(ALL) --bins --tests --profile test --quiet

lint: ## Formatting and clippy, warnings are errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(ALL) --all-targets --quiet -- --deny warnings

deny: built ## Advisories, licences, bans and sources of the dependency tree (cargo-deny, installed once)
	$(BUILT)/xtask deny --may-skip

notices: built ## Write THIRD-PARTY-NOTICES anew, after Cargo.lock has changed
	$(BUILT)/xtask notices

sbom: built ## A CycloneDX bill of materials for each binary, in target/sbom
	$(BUILT)/xtask sbom

attempts: built ## Write the list in docs/reference/security-tests.md anew, after its tests have changed
	$(BUILT)/xtask attempts

docs: built ## The documentation as a searchable static site, in target/book (mdBook, installed once)
	$(BUILT)/xtask docs build

reference: built ## Write the generated sections of docs/ anew, after types, help texts or the chart have changed
	$(BUILT)/xtask docs write

picture: built ## Run the quick start and draw docs/images/quickstart.svg from what happened
	$(BUILT)/xtask docs picture

IMAGE = --build-arg RELEASE=$(RELEASE) --build-arg VERSION=$(VERSION) \
    --build-arg REVISION=$(shell git rev-parse HEAD 2> /dev/null)
image: ## The controller's container image; RELEASE=1 refuses base images that are not pinned by digest
	docker build --tag muster-controller $(IMAGE) .
	docker build --quiet --tag muster-build --target build $(IMAGE) .
	mkdir -p $(TARGET)/image
	built=$$(docker create muster-build) && docker cp $$built:/src/target/dist/. $(TARGET)/image; docker rm $$built

unit: ## Unit, case, property and command-line tests
	$(CARGO) test $(ALL) $(UNIT) --quiet -- --test-threads $(UNIT_THREADS)

built:
	$(CARGO) build $(ALL) --bins --profile test --quiet

cluster: built ## Tests against a real Kubernetes, which is built first if it can be (see docs/design/testing.md)
	$(BUILT)/xtask testbed --may-skip
	$(CARGO) test $(ALL) --test cluster --quiet -- --test-threads $(CLUSTER_THREADS)

faults: built ## Random worlds with random faults, every promise checked after every event
	$(BUILT)/xtask faults --seeds $(FAULT_SEEDS)

examples: built ## Every example is a valid manifest
	$(BUILT)/muster check $(wildcard examples/*.yaml examples/workloads/*.yaml)

fuzz: ## Fuzz every reader with libFuzzer, FUZZ_SECONDS (600) each, then the HTTP API (schemathesis, from PyPI)
	FUZZ_SECONDS=$(FUZZ_SECONDS) sh fuzz/run.sh
	sh crates/server/tests/fuzz/real.sh

bench: ## Measure the planner; one JSON object per line
	@$(CARGO) xtask bench plan --json

clean: ## Remove everything that was built
	$(CARGO) clean
