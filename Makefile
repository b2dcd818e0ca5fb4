# The front door. Every target installs what it needs first; nothing outside this folder is touched,
# but for the browser of the console's tests, which comes from the machine's package manager.
PYTHON ?= python3
SEEDS ?= 200
FIRST ?= 1
WORKLOAD ?= flood
CHAOS_SECONDS ?= 60
PYTEST_ARGS ?=
BIN := .venv/bin

.PHONY: help setup setup-runtime run servers browser test check bench simulate faults docs lock format

help:
	@echo "make run        start everything on SQLite with sample tasks and print the address"
	@echo "make test       the whole test suite, on memory, SQLite and real PostgreSQL servers"
	@echo "make check      lint, format, types, doors between the rooms, house rules"
	@echo "make simulate   simulated clusters with faults; SEEDS=1000 for more"
	@echo "make faults     real processes and servers, killed and stopped"
	@echo "make bench      throughput and latency; WORKLOAD=flood|producer|pickup"
	@echo "make docs       the parts of docs/ that are drawn from the code"
	@echo "make setup      only the environment in .venv;  make servers: only the test servers"

setup:
	@PYTHON=$(PYTHON) tools/setup dev

setup-runtime:
	@PYTHON=$(PYTHON) tools/setup runtime

run: setup-runtime
	$(BIN)/mainspring up --demo

servers: setup
	@$(BIN)/python -m tests.support.install

browser:
	@tools/install-browser

test: servers browser
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q $(PYTEST_ARGS)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -q tests/house

bench: setup-runtime
	$(BIN)/mainspring bench $(WORKLOAD)

simulate: setup
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST)

faults: servers
	MAINSPRING_TEST_CHAOS_SECONDS=$(CHAOS_SECONDS) MAINSPRING_TEST_IDLE_SECONDS=20 MAINSPRING_TEST_KILLS=20 $(BIN)/python -m pytest -q -s tests/faults $(PYTEST_ARGS)

# The parts of docs/ that are drawn from the code.
docs: setup
	$(BIN)/python tools/generate_docs.py

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# After a change of the dependencies in pyproject.toml.
lock: setup
	tools/lock
