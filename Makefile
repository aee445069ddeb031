# Every target sets up its own .venv: Python 3.11+ with venv and pip is all that is needed (node and npm for `real`).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEV := hypothesis mypy pytest pytest-timeout pytest-xdist ruff

.PHONY: default test lint format real clean

default: test lint

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable . $(DEV)
	touch $@

test: $(VENV)/ready
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The real CLIs at pinned versions from npm, against a scripted model server on loopback.
real: $(VENV)/ready
	$(BIN)/python -m pytest tests/real -m real

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
