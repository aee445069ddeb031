# Every target sets up its own .venv: Python 3.11+ with venv and pip is all that is needed (node and npm for `real`).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEV := hypothesis import-linter mypy pytest pytest-timeout pytest-xdist ruff

.PHONY: default demo test quick crash torture lint format real newest ledger parity fuzz bench record-demo pages picture docs clean

default: test lint

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[git]' $(DEV)
	touch $@

# A recorded session of three members: needs no agent CLI and reaches nothing.
demo: $(VENV)/ready
	$(BIN)/teamchat demo

# What failed beside other tests runs once more, one at a time: a machine that is too busy fails no test, a bug fails twice.
AGAIN := --last-failed --last-failed-no-failures none -n 0

# Four at a time, also on two cores: many tests wait for agents. Their folders are in memory (/dev/shm) where it has room.
test: $(VENV)/ready
	$(BIN)/python -m pytest -n 4 || $(BIN)/python -m pytest $(AGAIN)

# What says most in little time: the core, the runners and the assemblers without the tests that damage things at random,
# and the main paths of the program.
quick: $(VENV)/ready
	$(BIN)/python -m pytest -n 4 tests/assemblers tests/core tests/runners \
		tests/cli/test_send.py tests/cli/test_resume.py tests/cli/test_stop.py tests/cli/test_demo.py \
		--ignore-glob='*/test_damaged*' --ignore=tests/runners/test_parser_fuzz.py --ignore=tests/core/engine/test_engine_properties.py

# Kills the real program at ten times as many random moments as `test` does; a failing case is named by its seed.
crash: $(VENV)/ready
	DEATHS=2000 $(BIN)/python -m pytest -n auto tests/cli/test_killed.py

# Every hostile agent of tests/torture/agents.py, in namespaces of their own; `test` runs the quick ones.
torture: $(VENV)/ready
	TORTURE=all $(BIN)/python -m pytest -n auto tests/torture

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The real CLIs from npm, against a scripted model server on loopback, at the pinned versions or with CLIS=newest.
CLIS ?= pinned
real: $(VENV)/ready
	clis=$$($(BIN)/python -m tests.real.clis $(CLIS)) && \
	export TEAMCHAT_REAL_CLIS=$$clis && \
	{ $(BIN)/python -m pytest tests/real -m real -n 4 || $(BIN)/python -m pytest tests/real -m real $(AGAIN); }

# What falls short at the newest versions of the CLIs: told, and no failure.
newest: $(VENV)/ready
	$(BIN)/python -m tests.real.newest

# Makes teamchat/core/doctor/ledger.json and the tables of docs/clis.md: minutes, on a quiet machine. VERSIONS="claude=2.1.300"
# adds versions to those that are pinned, newest or in the ledger already.
ledger: $(VENV)/ready
	$(BIN)/python -m tests.real.ledger $(VERSIONS)

# Makes teamchat/core/doctor/parity.json and the table of docs/parity.md from runs of the pinned CLIs: minutes.
parity: $(VENV)/ready
	$(BIN)/python -m tests.real.parity

# Twenty times as many damaged streams and stores as the tests try, and other streams each time; minutes.
fuzz: $(VENV)/ready
	DAMAGES=100 $(BIN)/python -m pytest tests/runners/test_damaged_streams.py tests/runners/test_damaged_live_streams.py \
		tests/cli/test_damaged_store.py -n auto \
		--hypothesis-profile=fuzz --timeout=0

# Times, memory and ratios, never asserted by tests; some minutes. What memory saves, and what large replies and hostile text
# cost, have bounds, which fail it.
bench: $(VENV)/ready
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/group.py
	$(BIN)/python -m benchmarks.chain
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python -m benchmarks.replies
	$(BIN)/python benchmarks/prompt.py
	$(BIN)/python -m benchmarks.hostile

# Makes the session that `teamchat demo` plays, with the real CLIs and a scripted model.
record-demo: $(VENV)/ready
	$(BIN)/python -m tests.real.record_demo teamchat/cli/demo.cassette

# What docs/ holds of the program: its commands, the keys of the team file, the schemas. A test compares them.
pages: $(VENV)/ready
	$(BIN)/python -m generators

# The picture of a terminal in the README, drawn from the demo at its own pace: 12 seconds.
picture: $(VENV)/ready
	$(BIN)/python -m generators.picture docs/images/demo.svg

# The manual as a site in site/; mkdocs-material comes into .venv with the first run.
docs: pages
	$(BIN)/pip install --quiet --constraint constraints.txt mkdocs-material
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) site .mypy_cache .pytest_cache .ruff_cache .hypothesis
