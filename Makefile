# One command per wish. Every target first makes .venv from requirements.lock; after the first time that costs nothing.
# Another Python: make PYTHON=python3.12 test. Without parallel tests: make test XDIST=

# The Python that .venv was made with, while there is one, so that a choice made once lasts.
PYTHON ?= $(shell test -x .venv/bin/python && echo .venv/bin/python || echo python3)
# A file of tests stays in one process, and the longest begin first: the order is that of tests/conftest.py.
XDIST ?= -n 3 --dist loadfile --no-loadscope-reorder
PYTEST_ARGS ?=
# How many histories of the engine `make torture` compares with its model; `make test` runs fewer.
MODEL_EXAMPLES ?= 3000
# How long its crowd of senders and consumers is at it.
CROWD_SECONDS ?= 60
# How many rounds through every SQL function with random arguments.
FUZZ_EXAMPLES ?= 200

BIN := .venv/bin

# Tests start hundreds of Python processes. Where this is set, each of them would compile every module of menzil anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint docs pictures release-check matrix bench load torture up clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## make .venv, the one thing every other target needs
	@$(PYTHON) tools/bootstrap.py

demo: setup ## a shop, its queue, a worker, a receiver that misbehaves, and its history as a lake: watch it happen
	@$(BIN)/python -m examples.demo

test: lint ## lint, then every test
	$(BIN)/python -m pytest -q $(XDIST) $(PYTEST_ARGS)

lint: setup ## style, types and the walls between the rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src tools examples/demo tests bench
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/twins.py --check

docs: setup ## build the documentation as a site with search, build/site, and check its links
	$(BIN)/python tools/cli_options.py --check
	$(BIN)/python tools/llms.py --check
	$(BIN)/python tools/site.py

pictures: setup ## take the pictures of README and docs anew, with the Chromium of this machine
	MENZIL_PICTURES=docs/pictures $(BIN)/python -m pytest -q -n 0 tests/console/test_pictures.py

release-check: setup ## build wheel and sdist, and try both alone in an empty environment
	$(BIN)/python tools/release_check.py

matrix: setup ## the tour and quick tests on every Python and PostgreSQL that this machine has; MATRIX_ARGS=--quick: each once
	$(BIN)/python tools/matrix.py $(MATRIX_ARGS)

bench: setup ## measure the figures we publish, as ratios
	$(BIN)/python -m bench

load: setup ## keep it under load for half an hour: latency, sizes, memory
	$(BIN)/python -m bench.load

torture: setup ## the long run: faults, mutants, strangers, settings, dumps, failovers, a crowd, the model, the fuzz, Spark
	$(BIN)/python -m pytest -q -s --timeout 7200 -n 0 -m torture tests/torture $(PYTEST_ARGS)
	$(BIN)/python -m pytest -q --timeout 7200 -n 0 -m torture tests/strangers $(PYTEST_ARGS)
	$(BIN)/python -m pytest -q --timeout 7200 -n 0 -m torture tests/settings $(PYTEST_ARGS)
	MENZIL_CROWD_SECONDS=$(CROWD_SECONDS) $(BIN)/python -m pytest -q --timeout 7200 -n 0 tests/races/test_crowd.py $(PYTEST_ARGS)
	MENZIL_MODEL_EXAMPLES=$(MODEL_EXAMPLES) $(BIN)/python -m pytest -q --timeout 7200 -n 0 tests/model $(PYTEST_ARGS)
	MENZIL_FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(BIN)/python -m pytest -q --timeout 7200 -n 0 tests/fuzz $(PYTEST_ARGS)
	$(BIN)/python -m pytest -q -s --timeout 7200 -n 0 -m torture tests/spark $(PYTEST_ARGS)

up: setup ## start a PostgreSQL of your own
	@$(BIN)/menzil pg start

clean: ## remove .venv, builds and caches; databases stay
	rm -rf .venv .venv.lock build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests tools bench examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
