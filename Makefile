# 'make help' lists what there is. Everything is installed into .venv, by the first target that needs it.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The file's date says when the environment was last brought up to what pyproject and the constraints ask for.
$(VENV)/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fedquorum needs Python 3.11 or later; say make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

.PHONY: setup
setup: $(VENV)/ready ## install fedquorum and the development tools into .venv

.PHONY: demo
demo: setup ## train 500 models on handwritten digits and certify their votes (under a minute)
	$(BIN)/fedquorum run digits

.PHONY: test
test: setup ## run all tests, with coverage
	$(BIN)/python -m pytest --cov --cov-report=term:skip-covered -q

.PHONY: lint
lint: setup ## check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

.PHONY: format
format: setup ## put all files into the house's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: check
check: lint test ## what CI runs: lint, then test

.PHONY: bench
bench: setup ## measure speed against the machine's own matrix product, PyTorch, Flower and FedJAX (about 10 minutes)
	$(BIN)/python benchmarks/run.py

.PHONY: constraints
constraints: setup ## resolve the pinned versions anew, over the core, the tools and the ray, flower and flax extras
	$(BIN)/python -m pip install --quiet uv
	{ sed -n '/^#/p' constraints.txt; $(BIN)/uv pip compile pyproject.toml --extra ray --extra flower --extra flax \
	  --extra dev --python-version 3.11 --no-emit-index-url --no-header --no-annotate --quiet; } > constraints.new
	mv constraints.new constraints.txt

.PHONY: clean
clean: ## remove .venv and everything that tools leave behind; runs/ stays
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
