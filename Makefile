# Every target sets up .venv, `demo` only what the program needs. It needs Python 3.11+ with venv and pip, and for `real` also
# node and npm.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: default demo test long quick crash edits torture cheats lint format real workers workers-crash newest ledger agents parity fuzz bench bench-quick bench-page record-demo record-processes record-chat pages picture docs dist requirements clean

default: test lint

# The file `program` has the version of the Python that made .venv. Another PYTHON makes it anew.
PYTHON_VERSION := $(shell $(PYTHON) --version)
ifneq ($(PYTHON_VERSION),$(shell cat $(VENV)/program 2>/dev/null))
.PHONY: $(VENV)/program
endif

# Every package is a wheel with a hash. The project itself is built by the hatchling that is among them.
WHEELS := --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all:
$(VENV)/program: pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "teamchat needs Python 3.11 or later, as in: make demo PYTHON=python3.12")'
	@echo 'set-up 1 of 3: a Python environment in $(VENV)'
	@$(PYTHON) -m venv --clear $(VENV)
	@echo 'set-up 2 of 3: the packages of requirements.txt'
	@$(BIN)/pip install $(WHEELS) --requirement requirements.txt
	@echo 'set-up 3 of 3: teamchat'
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@echo '$(PYTHON_VERSION)' >$@

$(VENV)/ready: $(VENV)/program requirements-dev.txt
	@echo 'set-up: the packages of the tests, requirements-dev.txt'
	@$(BIN)/pip install $(WHEELS) --requirement requirements-dev.txt
	@$(BIN)/pip check
	@touch $@

# Sets up what the program needs, and runs a conversation of three small scripts. Ctrl-C is the program's to answer.
demo: $(VENV)/program
	@$(BIN)/teamchat demo

# Failed tests run once more, one at a time: a busy machine can fail a test once, a bug fails it twice.
AGAIN := --last-failed --last-failed-no-failures none -n 0

# Five tests at a time, also on two cores, because many tests wait for agents; a worker that is done takes another's tests.
# Each worker needs up to half a gigabyte of memory.
# Their folders are in /dev/shm if there is room (tests/folders.py); those of a failed run are then in .failed-tests.
test: $(VENV)/ready
	$(BIN)/python -m pytest -n 5 --dist worksteal || $(BIN)/python -m pytest $(AGAIN)

# The tests of minutes that `test` leaves out: every command of chat with every option, kills in worktrees and processes.
long: $(VENV)/ready
	$(BIN)/python -m pytest -n 5 --dist worksteal -m long || $(BIN)/python -m pytest -m long $(AGAIN)

# The core, the runners and the assemblers, without the tests that damage things at random, and the main commands.
quick: $(VENV)/ready
	$(BIN)/python -m pytest -n 4 tests/assemblers tests/core tests/runners \
		tests/cli/test_send.py tests/cli/test_resume.py tests/cli/test_stop.py tests/cli/test_demo.py \
		--ignore-glob='*/test_damaged*' --ignore=tests/runners/json_events/test_any_output.py --ignore=tests/core/engine/decide/test_properties.py

# Kills the real program at 2,000 random moments, fifty times as many as `test`, and a conversation before each of its
# steps, of which `test` tries a third. A failure names its seed or its step.
crash: $(VENV)/ready
	DEATHS=2000 $(BIN)/python -m pytest -n auto -m 'long or not long' tests/cli/test_killed.py tests/cli/test_killed_mapreduce.py tests/cli/test_killed_until.py \
		tests/core/conversation/test_recovery.py tests/core/checkpoint/test_killed_checkpoints.py

# A user edits files 2,000 times while undo, redo, retry, merge and merge --undo run, and members take 200 random turns on two
# hosts. A failure names its seed.
edits: $(VENV)/ready
	EDITS=$(or $(EDITS),2000) TURNS_ON_HOSTS=200 $(BIN)/python -m pytest -n auto -m 'long or not long' -rP tests/cli/test_user_edits.py \
		tests/core/turn/test_random_turns_on_hosts.py

# Runs every hostile agent of tests/torture/agents.py, each in its own namespaces. `test` runs a third of the quick ones.
torture: $(VENV)/ready
	TORTURE=all $(BIN)/python -m pytest -n auto tests/torture

# Tries all ways of tests/cheats to make a check green without mending the code, of which `test` tries a fifth. It takes
# minutes, and node and npm, which bring mocha, jest and vitest.
cheats: $(VENV)/ready
	$(BIN)/python -m pytest -n auto -m 'cheats or not cheats' tests/cli/test_cheats.py

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Runs the real CLIs from npm against a scripted model server on loopback: the pinned versions, or with CLIS=newest the newest.
# The longest tests begin, and are handed out one by one.
CLIS ?= pinned
real: $(VENV)/ready
	clis=$$($(BIN)/python -m tests.real.clis $(CLIS)) && \
	export TEAMCHAT_REAL_CLIS=$$clis && \
	{ $(BIN)/python -m pytest tests/real -m 'real or proof' -n 4 --maxschedchunk 1 || \
	$(BIN)/python -m pytest tests/real -m 'real or proof' $(AGAIN); }

# Runs workers over a PostgreSQL of its own, at most 4 minutes. It needs PostgreSQL, which .ci/postgres installs on Debian,
# openssl and ssh-keygen.
workers: $(VENV)/ready
	$(BIN)/python -m pytest tests/workers -m workers -n 4 --dist worksteal || \
	$(BIN)/python -m pytest tests/workers -m workers $(AGAIN)

# The same with 300 kills, 500 subtasks under kills, a full disk and the real clocks, at most 20 minutes.
workers-crash: $(VENV)/ready
	KILLS=50 $(BIN)/python -m pytest tests/workers/test_killed_hosts.py tests/workers/test_under_faults.py \
		-m 'workers or workers_crash' -n 4 --dist worksteal --timeout 1200

# Prints which checks do not hold with the newest CLIs and the newest DBOS, and what the CLIs decide by themselves. It does not
# fail for that.
newest: $(VENV)/ready
	$(BIN)/python -m tests.real.newest

# Makes teamchat/core/doctor/ledger.json and the tables of docs/clis.md. It takes minutes on a quiet machine. It runs the pinned
# versions, the newest ones and those in the ledger; VERSIONS="claude=2.1.300" adds more.
ledger: $(VENV)/ready
	$(BIN)/python -m tests.real.ledger $(VERSIONS)

# Runs the agents that a row describes, and records tests/captures/agents/, which `test` plays and docs/clis.md shows. It takes
# ten minutes, and brings Node 22 from npm; vibe needs a Python 3.12 or newer. AGENTS="qwen pi" runs only these.
agents: $(VENV)/ready
	$(BIN)/python -m tests.real.agents $(AGENTS)
	$(BIN)/python -m generators

# Makes teamchat/core/doctor/parity.json and the table of docs/parity.md by running the pinned CLIs. It takes minutes.
parity: $(VENV)/ready
	$(BIN)/python -m tests.real.parity

# Tries thirty times as many damaged streams and stores as `test` and fifty times as many examples of the properties in
# these files, and different ones each time. It takes tens of minutes.
fuzz: $(VENV)/ready
	DAMAGES=100 TRIALS=50 $(BIN)/python -m pytest tests/runners/test_damaged_streams.py \
		tests/runners/test_damaged_live_streams.py tests/runners/json_events/test_any_output.py tests/cli/test_damaged_store.py \
		tests/cli/test_any_arguments.py tests/cli/test_odd_numbers_and_times.py tests/core/routing \
		tests/core/text/test_redact.py tests/core/engine tests/core/cassette/test_hostile_cassettes.py \
		tests/core/context/test_vendor_session.py tests/core/checkpoint/restore/test_random_trees.py \
		tests/core/transcripts tests/cli/test_export.py \
		tests/cli/test_export_html.py -n auto --hypothesis-profile=fuzz --timeout=0

# Measures times, memory and ratios, each beside its floor, in half an hour. WHAT="startup group/fifty*" takes only
# these. It fails if a figure is over its bound.
WHAT ?=
bench: $(VENV)/ready
	$(BIN)/python -m benchmarks $(WHAT)

# A subset of two minutes, with its files in memory if there is room. It fails if a figure is over its bound.
bench-quick: $(VENV)/ready
	$(BIN)/python -m benchmarks --quick $(WHAT)

# Keeps the figures of this machine in benchmarks/measured.json and writes the tables of docs/performance.md.
bench-page: $(VENV)/ready
	$(BIN)/python -m benchmarks --json benchmarks/measured.json $(WHAT) || [ $$? -eq 1 ]
	$(BIN)/python -m generators

# Records the session that `teamchat demo` plays, with the real CLIs and a scripted model.
record-demo: $(VENV)/ready
	$(BIN)/python -m tests.real.record_demo teamchat/cli/demo.cassette

# Records the sessions of examples/processes and examples/ship with the real CLIs and a scripted model.
record-processes: $(VENV)/ready
	$(BIN)/python -m tests.real.record_processes

# Records examples/chat.cast at a terminal, with the real CLIs and a scripted model, and draws the README's picture from it.
record-chat: $(VENV)/ready
	$(BIN)/python -m tests.real.record_chat
	$(BIN)/python -m generators.picture chat.svg

# Writes the generated parts of docs/: commands, the team file's keys, schemas. A test checks that they are up to date.
pages: $(VENV)/ready
	$(BIN)/python -m generators

# Draws the terminals of docs/images/ (the README's from examples/chat.cast, the others from the demo), records
# examples/demo.cast and takes the screenshots of docs/, at the demo's recorded pace: 25 seconds. The screenshots need Chromium.
picture: $(VENV)/ready
	$(BIN)/python -m generators.picture
	$(BIN)/python -m generators.exports

# Builds the manual as a site in site/.
docs: pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Builds the sdist and the wheel in dist/, with nothing but what is in .venv.
dist: $(VENV)/ready
	$(BIN)/python -m hatchling build

# Writes requirements.txt and requirements-dev.txt from constraints.txt. It asks the index for the hashes, which takes minutes.
requirements:
	$(PYTHON) -m generators.requirements

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .failed-tests
