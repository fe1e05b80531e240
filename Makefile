# Two commands are enough: `make run` and `make test`. `make help` lists the others.

# The first Python that runs starts the setup, which looks for a newer one if it has to.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do $$p -c '' 2>/dev/null && command -v $$p && break; done)
BIN := .venv/bin

# Without compiled files every worker and every process of a test would compile the project anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run demo test test-newer-spark check lint format types layers behaviours bench race race-page cost cost-baseline chaos sim-long crash-images fuzz soak idle evidence golden sbom changelog clean
# `check` is in the order in which things fail fastest.
.NOTPARALLEL:

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv with the pinned versions; nothing to do if that is done
	@test -n "$(PYTHON)" || { echo "setup: found no python3; Tanist needs Python 3.11 or newer, with its venv module" >&2; exit 1; }
	@"$(PYTHON)" scripts/setup.py

run: setup ## Run a whole cluster with its console on this machine, until Ctrl-C; ARGS="--mode auto-switch"
	$(BIN)/tanist up --home build/run $(ARGS)

demo: setup ## Tell the whole story without hands: kill, read on, switch, reset, archive, audit; ARGS="--no-spark"
	$(BIN)/tanist demo $(ARGS)

test: setup ## Run the tests on all cores; ARGS="tests/unit -k name" picks some
	$(BIN)/pytest -n auto --dist worksteal $(ARGS)

NEWER_SPARK := 4.3.0
NEWER_SPARK_AT := $(CURDIR)/build/pyspark-$(NEWER_SPARK)

$(NEWER_SPARK_AT): | setup
	$(BIN)/pip install --disable-pip-version-check --no-build-isolation --no-deps --target $@.part pyspark==$(NEWER_SPARK)
	mv $@.part $@

# It is found before the Spark of .venv, also by the processes that Spark starts.
test-newer-spark: setup $(NEWER_SPARK_AT) ## Run Spark's tests with the newer of the versions that are supported
	PYTHONPATH=$(NEWER_SPARK_AT) $(BIN)/pytest tests/unit/spark tests/integration/test_spark*.py $(ARGS)

check: lint layers types test behaviours ## Run all that has to pass before a commit

# Ruff has these rules too, and is told line by line where they do not hold.
RUFF_JUDGES := B104,B108,B506,B704

lint: setup ## Check the format, the ruff rules, and with bandit what is unsafe
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/bandit --quiet --recursive -ll --skip $(RUFF_JUDGES) src

format: setup ## Format the code and mend what ruff can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

types: setup ## Check the types with pyright
	$(BIN)/pyright

layers: setup ## Check that imports point down only
	$(BIN)/lint-imports

behaviours: setup ## Count the promised behaviours that have a test
	$(BIN)/python scripts/behaviours.py

bench: setup ## Measure; ARGS go to the benchmark
	$(BIN)/python -m bench $(ARGS)

race: setup ## Race Tanist, RocketMQ, Redis, NATS and the bare machine, within 40 minutes; ROWS=bare,lean-sends
	$(BIN)/python -m bench.race $(if $(QUICK),--quick) $(ROWS)

race-page: setup ## Make the page about performance again from the last full race
	$(BIN)/python -m bench.race_page

cost: setup ## Count what a message costs a broker, beside the recorded counts
	$(BIN)/python -m bench.cost

cost-baseline: setup ## Record these counts anew
	$(BIN)/python -m bench.cost --write

# What a long run finds is left there with the commit it ran at, for `make evidence`.
FOUND := build/evidence
begin = @mkdir -p $(FOUND) && git describe --always --dirty --abbrev=12 > $(FOUND)/$(1).commit || echo unknown > $(FOUND)/$(1).commit

chaos: setup ## Break clusters of all kinds in all ways, and judge what clients saw; ARGS go to tanist chaos
	$(call begin,chaos)
	PYTHONPATH=. $(BIN)/python scripts/chaos.py --record $(FOUND)/chaos.json $(ARGS)

fuzz: setup ## Bend bytes until a decoder breaks; ARGS="--seconds 10 sql"; fetches atheris
	$(call begin,fuzz)
	PYTHONPATH=. $(BIN)/python scripts/fuzz.py $(ARGS)

sim-long: setup ## Run 100,000 simulated histories
	$(call begin,sim)
	$(BIN)/tanist sim --count 20000 --record $(FOUND)/sim.json $(ARGS)

crash-images: setup ## Open some ten thousands of images of crashed stores, each of them twice
	$(call begin,crash-images)
	TANIST_CRASH_IMAGES=12 $(BIN)/pytest -n auto --dist worksteal -rP -o junit_logging=system-out --junit-xml=$(FOUND)/crash-images.xml tests/integration/test_crash_images.py $(ARGS)

soak: setup ## Run a broker under load for two hours with 512 MB of memory; ARGS="--minutes 2"
	$(call begin,soak)
	$(BIN)/python -m bench.load_soak --record $(FOUND)/soak.json $(ARGS)

idle: setup ## Hold 10,000 idle connections for ten minutes, then stalled and slow clients; ARGS="--minutes 1"
	$(call begin,idle)
	$(BIN)/python -m bench.load --record $(FOUND)/idle.json $(ARGS)

evidence: setup ## Write docs/evidence.md out of what the last long runs found
	$(BIN)/python scripts/evidence.py

golden: setup ## Write the golden bytes of the tests again; needs Java and Maven
	$(BIN)/python -m tests.support.golden

sbom: setup ## Write build/sbom.json, a bill of materials (CycloneDX)
	@mkdir -p build
	$(BIN)/python scripts/sbom.py $(ARGS) > build/sbom.json

changelog: setup ## Show what the next release notes will say
	$(BIN)/towncrier build --draft

clean: ## Remove all that was made, .venv too
	rm -rf .venv build dist .pytest_cache .hypothesis .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
