# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Each control plane has one worker, which mostly waits; the fifth computes meanwhile.
WORKERS ?= 5
# More options of pytest, such as FLAGS=--randomly-seed=14.
FLAGS ?=
# Where a run keeps what each case cost; the name of the target is put before it.
COSTS ?= costs.json
PYTEST = $(BIN)/pytest --numprocesses=$(WORKERS) --costs=.costs/$@-$(COSTS) $(FLAGS)
# Empty counts as unset, so that Python keeps compiled modules: the tests start the tool a thousand times.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup hooks controlplane mpi-packages image-packages torch test test-rest test-fast test-lowest coverage audit lint format docs demo bench package release clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP)  ## create .venv with everything that the tests need

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[sandbox,live]' --group test --group lint --group docs
	@touch $(STAMP)

hooks: $(STAMP)  ## run the linters before each commit
	$(BIN)/python -m pip install --quiet --group hooks
	$(BIN)/pre-commit install

lint: $(STAMP)  ## check style, types, the direction of imports and the words
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.words

format: $(STAMP)  ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

controlplane: $(STAMP)  ## build the real control plane of the tests into the user's cache (five minutes, once)
	$(BIN)/python -m tests.controlplane build

mpi-packages: $(STAMP)  ## install what tests of real ranks, and of wrong clocks, need (as root): Open MPI 4 and 5, MPICH, ssh, faketime
	$(BIN)/python -m pip install --quiet --group ranks
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	  openmpi-bin libopenmpi-dev mpich libmpich-dev openssh-server openssh-client iproute2 gcc libc6-dev faketime

image-packages:  ## install what builds an image of arena-topo in its test (as root): buildah, and mmdebstrap for its base
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends buildah mmdebstrap debian-archive-keyring

torch: $(STAMP)  ## install torch for the tests of its ranks, in an environment of its own (4.8 GB, a minute)
	$(PYTHON) -m venv $(VENV)/torch
	$(VENV)/torch/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(VENV)/torch/bin/python -m pip install --quiet --group torch

test-fast: lint  ## run all tests but those on the real control plane
	@echo 'test-fast leaves out the real control plane: run `make test` for the whole truth' >&2
	$(PYTEST) -m 'not controlplane'

test: lint  ## run all tests that a change can break, on real control planes too: ten minutes once they are built
	$(PYTEST)

test-rest: $(STAMP)  ## run what test leaves out and names: real ranks, every step of replicas, kubeflow/arena itself
	$(PYTEST) --tier=rest

test-lowest:  ## run test-fast with the lowest versions of dependencies that pyproject.toml admits
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet 'pip>=25.1' 'packaging>=25'
	$(VENV)-lowest/bin/python -m tools.lowest > $(VENV)-lowest/constraints.txt
	$(VENV)-lowest/bin/python -m pip install --quiet --constraint $(VENV)-lowest/constraints.txt --editable '.[sandbox,live]' --group test
	$(VENV)-lowest/bin/pytest --numprocesses=$(WORKERS) -m 'not controlplane'

coverage: $(STAMP)  ## print the share of lines and branches that the tests without control planes and properties run
	$(PYTEST) -m 'not controlplane and not hypothesis' --ignore=tests/hostile --cov --cov-report=term:skip-covered

docs: $(STAMP)  ## write the generated part of the documentation, and build it as a site into site/
	$(BIN)/python docs/reference/generate.py
	$(BIN)/python docs/explanation/generate.py
	$(BIN)/python -m tools.house
	$(BIN)/python -m tools.typed_pages
	$(BIN)/python -m tools.screens
	$(BIN)/python docs/gallery/generate.py
	$(BIN)/python docs/how-to/python/generate.py
	$(BIN)/python -m benchmarks.predictions --write
	$(BIN)/python -m benchmarks.worth.page
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

audit: $(STAMP)  ## compare what users install with the known vulnerabilities, where their database can be reached
	$(PYTHON) -m venv $(VENV)-audit
	-$(VENV)-audit/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	-$(VENV)-audit/bin/python -m pip install --quiet --group audit
	$(BIN)/python -m tools.audit $(VENV)-audit/bin/pip-audit

demo: $(STAMP)  ## run the main job on the embedded cluster, in half a minute
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash docs/tutorial/demo.sh

bench: $(STAMP)  ## measure beside kubectl, on the real control plane, and beside the rules of other schedulers
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.reading
	$(BIN)/python -m benchmarks.snapshot
	$(BIN)/python -m benchmarks.gpus.sets
	$(BIN)/python -m benchmarks.sandbox
	$(BIN)/python -m benchmarks.fleet
	$(BIN)/python -m benchmarks.saturation
	$(BIN)/python -m benchmarks.why
	$(BIN)/python -m benchmarks.worth

package: $(STAMP)  ## build the wheel and the source distribution into dist/, check them, and try the wheel
	$(BIN)/python -m pip install --quiet --group release
	$(BIN)/python -m tools.distribution

release: $(STAMP)  ## build, check and tag a release: make release VERSION=1.2.3
	$(BIN)/python -m pip install --quiet --group release
	$(BIN)/python -m tools.release $(VERSION) $(if $(TEST),--test '$(TEST)')

clean:  ## remove what the targets made here (the cache of built binaries stays)
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-audit dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage .costs
