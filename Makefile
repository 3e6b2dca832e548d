# Everything a user or a build machine runs. The recordings for tests and calibration are found through GAZEVEIL_DATA alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export GAZEVEIL_DATA ?= $(abspath ../shared/data)
export MPLBACKEND := Agg
# The optional deep models are tested with the wheel for processors alone; a newer one pulls gigabytes of CUDA on Linux.
TORCH := torch==2.13.0

# A kernel is compiled again when it, or what it is made of, has changed (src/gazeveil/compiled.py): one folder serves all states.
KERNELS := $(abspath $(VENV))/numba

.PHONY: install wheel source release browser database demo test check bench audit docs newcomer clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    simulate people, protect, attack and use their gaze, write a report"
	@echo "make test    style, types, layers, and all tests"
	@echo "make check   style, types and layers alone"
	@echo "make wheel   the wheel of this kind of machine, with compiled kernels, in dist"
	@echo "make source  the source archive, and a wheel without compiled kernels for other machines, in dist"
	@echo "make bench   speed and agreement against peers, side by side, in about 45 minutes; JSON lines in benchmarks/results"
	@echo "make audit   the heavy checks: memory at 100 million samples, every labelled file, planted bugs and who catches them"
	@echo "make docs    the manual as HTML in docs/_build"
	@echo "make newcomer   install the wheel into empty environments and follow the first ten minutes"

# Everything, and all kernels compiled once, side by side; tests find them, and compile what has changed since.
install: export NUMBA_CACHE_DIR = $(KERNELS)
install: $(VENV)/.installed
	@test -e $(KERNELS)/.all || { $(BIN)/python packaging/kernels.py && touch $(KERNELS)/.all; }

# The package alone.
$(VENV)/.package: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

# What tests, checks and the manual need beside it.
$(VENV)/.installed: $(VENV)/.package
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,docs,pymovements,cluster,service]' $(TORCH)
	touch $@

# For this machine's kind and the Python of the environment, with the machine code of all kernels; takes minutes.
wheel: $(VENV)/.installed
	GAZEVEIL_KERNELS=1 $(BIN)/python -m hatchling build -t wheel

# The source, and from it a wheel without machine code, for all other machines; without a compiler.
source: $(VENV)/.installed
	$(BIN)/python -m hatchling build -t sdist
	CC=false CXX=false $(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist dist/gazeveil-*.tar.gz

# Pages are tested in a real browser. Where it cannot be installed those tests say so and are skipped.
browser:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || echo "chromium is not here and cannot be installed"

# The ledger is tested on a real PostgreSQL too, started by the tests on loopback.
database:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null; } || echo "PostgreSQL is not here and cannot be installed"

demo: export NUMBA_CACHE_DIR = $(KERNELS)
demo: $(VENV)/.package
	@test -e $(KERNELS)/.demo || { $(BIN)/python packaging/kernels.py "gazeveil demo" && touch $(KERNELS)/.demo; }
	$(BIN)/gazeveil demo --out demo

check: $(VENV)/.installed
	$(BIN)/ruff check src tests benchmarks docs
	$(BIN)/ruff format --check src tests benchmarks docs
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: export NUMBA_CACHE_DIR = $(KERNELS)
# What the tests must find: what pip has installed, and what is here. A build machine that must have all sets
# GAZEVEIL_EXPECTS="data chromium postgres torch dask". A test that is skipped for want of something expected fails the run.
EXPECTS = torch dask $(if $(wildcard $(GAZEVEIL_DATA)/*),data) $(if $(shell command -v chromium),chromium) \
  $(if $(wildcard /usr/lib/postgresql/*/bin/initdb),postgres)
test: export GAZEVEIL_EXPECTS ?= $(EXPECTS)
# Four processes on two cores, because a third of the time is waiting for services, pages and databases; one thread of mathematics
# and of tables in each, because threads of several processes on the same cores wait for one another.
test: export OMP_NUM_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test: export POLARS_MAX_THREADS = 1
# Bytecode is kept, also where the environment says otherwise: without it every process that a test starts compiles the package again.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.installed browser database
	@$(MAKE) --no-print-directory --output-sync -j 2 check $(VENV)/.collected
	$(BIN)/python -m pytest -n 4 --dist worksteal -m "not heavy"

# To rewrite the assertions of the tests takes half of collecting them. One process does it while types are checked; else each does.
$(VENV)/.collected: $(VENV)/.installed $(shell find src tests -name '*.py')
	@$(BIN)/python -m pytest --collect-only -q -m "not heavy" >/dev/null || true
	@touch $@

# A line for each, a limit of time for each, and exit code 1 where a floor was missed; names, sizes and times: benchmarks/run.py --list.
bench: $(VENV)/.installed
	$(BIN)/python benchmarks/run.py

# Planted bugs: every one must fail a test, and most of them an audit.
audit: $(VENV)/.installed
	$(BIN)/python -m pytest -m heavy
	GAZEVEIL_EXAMPLES=400 $(BIN)/python -m pytest -m "hypothesis and not heavy"
	$(BIN)/python -m tests.planted.run

docs: $(VENV)/.installed
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build

# An empty environment, the wheel, and docs/start/ten-minutes.md line by line: for each Python that is here, or PYTHON=python3.12; with a
# wheel made now, or WHEEL=dist/gazeveil-*.whl.
newcomer: $(VENV)/.installed
	$(BIN)/python -m benchmarks.newcomer $(if $(WHEEL),--wheel $(wildcard $(WHEEL))) $(if $(findstring command,$(origin PYTHON)),$(PYTHON))

# make release VERSION=0.2.0: the version where it stands, a commit and a tag; wheels are built where the tag is pushed.
VERSIONED := src/gazeveil/__init__.py CITATION.cff docs/start/ten-minutes.md docs/howto/gatekeeper/running.md docs/reference/cite.md
release:
	@echo "$(VERSION)" | grep -qxE '[0-9]+\.[0-9]+\.[0-9]+' || { echo "Say which, three numbers: make release VERSION=0.2.0"; exit 2; }
	@test -z "$$(git status --porcelain)" || { echo "Commit first."; exit 2; }
	@! git tag | grep -qx "v$(VERSION)" || { echo "v$(VERSION) is there already."; exit 2; }
	sed -i "s/$$(sed -n 's/^version: //p' CITATION.cff | sed 's/[.]/[.]/g')/$(VERSION)/" $(VERSIONED)
	sed -i "s/^## .* (not released yet)$$/## $(VERSION) ($$(date +%F))/" CHANGELOG.md
	git commit -qam "Release $(VERSION)"
	git tag -a v$(VERSION) -m "Gazeveil $(VERSION)"

clean:
	rm -rf $(VENV) demo docs/_build
