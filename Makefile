# Every task sets up what it needs: `make test` on a fresh machine creates .venv, installs and runs.
# All tasks share one editable installation in .venv; each adds only its own extras to it.

PYTHON ?=
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Test processes at a time; `make test WORKERS=0` runs in one process.
WORKERS    ?= 2
TEST_ARGS  ?=
DEMO_ARGS  ?=
BENCH_ARGS ?=
FUZZ_FILES ?= 10000
PIP_ARGS   ?=

export NO_MKDOCS_2_WARNING := 1
# Tests start many processes; each one would compile the source again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help install kernels demo test test-nojit test-lowest fuzz lint format bench docs docs-serve clean

help: ## list the tasks
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: $(VENV)/.stamp-dev ## create .venv with everything that tests and checks need

kernels: $(VENV)/.stamp-dev ## compile all kernels, so that the first use does not have to
	$(BIN)/toprank warmup

demo: $(VENV)/.stamp-cli ## simulate an audit campaign, fit a model, print the top alerts
	$(BIN)/toprank demo $(DEMO_ARGS)

test: $(VENV)/.stamp-dev ## run the test suite (TEST_ARGS="-k name", WORKERS=0)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TEST_ARGS)

# Plain Python checks every index of an array, and says where floats overflow, which kernels do not.
test-nojit: $(VENV)/.stamp-dev ## run the tests of kernels and trees with every kernel as plain Python
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --hypothesis-profile=quick \
	  -W ignore::RuntimeWarning $(TEST_ARGS) tests/core tests/tree

test-lowest: $(VENV)/.stamp-venv ## run the tests with the oldest supported version of every dependency, in .venv-lowest
	$(BIN)/python tools/lowest_versions.py dev > $(VENV)/lowest.txt
	$(MAKE) test VENV=.venv-lowest PIP_ARGS="--constraint $(VENV)/lowest.txt" \
	  TEST_ARGS="-W ignore::DeprecationWarning $(TEST_ARGS)" # old packages on top of new ones that they depend on

fuzz: $(VENV)/.stamp-dev ## load damaged model files with all bounds checked (FUZZ_FILES=10000)
	TOPRANK_FUZZ_FILES=$(FUZZ_FILES) $(BIN)/python -m pytest -n 0 -m slow tests/files/test_fuzz.py

lint: $(VENV)/.stamp-dev ## check style, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/.stamp-dev ## fix what can be fixed automatically
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.stamp-bench ## measure speed beside LightGBM, XGBoost and scikit-learn
	$(BIN)/python benchmarks/speed/run.py $(BENCH_ARGS)

docs: $(VENV)/.stamp-docs ## build the documentation into site/
	$(BIN)/mkdocs build --strict --quiet

docs-serve: $(VENV)/.stamp-docs ## serve the documentation while editing
	$(BIN)/mkdocs serve

clean: ## remove the environment, caches and everything generated
	rm -rf $(VENV) .venv-lowest build dist site toprank-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The interpreter: PYTHON if given, else python3.11, else python3, if that is 3.11 or later.
$(VENV)/.stamp-venv:
	@for candidate in $(or $(PYTHON),python3.11 python3); do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    found="$$candidate"; break; \
	  fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "toprank needs Python 3.11 or later; not found among: $(or $(PYTHON),python3.11 python3)." \
	    "Hint: install it, or name it: make PYTHON=/path/to/python3.12" >&2; \
	  exit 1; \
	fi; \
	echo "creating $(VENV) with $$("$$found" --version)"; \
	"$$found" -m venv --clear $(VENV)
	@touch $@

# One stamp per set of extras, renewed when pyproject.toml changes.
$(VENV)/.stamp-%: pyproject.toml | $(VENV)/.stamp-venv
	@echo "installing toprank[$*] into $(VENV)"
	@$(PIP) install $(PIP_ARGS) --editable ".[$*]"
	@touch $@
