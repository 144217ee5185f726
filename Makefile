# The two commands: `make run` and `make test`. Everything they need beyond Rust is built under target/.

CARGO ?= cargo
FAULT_SEEDS ?= 400
# What the tests have built is used as it is: a build for speed takes longer than it would save here.
RUN_BUILT = $(CARGO) run --quiet --profile test

.PHONY: help run test lint unit cluster faults examples fuzz bench clean

help: ## Say what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1|/' | column -t -s '|'

run: ## Run examples/quickstart.yaml: real workers on simulated nodes, in about a minute
	@$(CARGO) run --quiet --package muster-cli -- run --logs examples/quickstart.yaml

test: lint unit cluster faults examples ## Everything CI runs

lint: ## Formatting and clippy, warnings are errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features --quiet -- --deny warnings

unit: ## Unit, case, property and command-line tests
	$(CARGO) test --workspace --quiet

cluster: ## Tests against a real Kubernetes, which is built first if it can be (see docs/testing.md)
	$(RUN_BUILT) --package muster-xtask -- testbed --may-skip
	$(CARGO) test --package muster-testkit --features cluster --test cluster --quiet
	$(CARGO) test --package muster-kube --features cluster --test cluster --quiet -- --test-threads 3

faults: ## Random worlds with random faults, every promise checked after every event
	$(RUN_BUILT) --package muster-xtask -- faults --seeds $(FAULT_SEEDS)

examples: ## Every example is a valid manifest
	$(RUN_BUILT) --package muster-cli -- check $(wildcard examples/*.yaml examples/workloads/*.yaml)

fuzz: ## Fuzz the HTTP API of a control plane from its own OpenAPI document (schemathesis, from PyPI)
	sh crates/server/tests/fuzz/real.sh

bench: ## Measure the planner; one JSON object per line
	@$(CARGO) xtask bench plan --json

clean: ## Remove everything that was built
	$(CARGO) clean
