# `make demo` and `make test` do all set-up themselves: they need python3 (3.11 or newer) with venv, and make.
# The environment is .venv here; a stamp file per set of extras makes the second run quick.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST_ARGS ?= -n auto --dist worksteal
OUT ?= out
unexport PYTHONDONTWRITEBYTECODE  # tests and demos start many processes, which would each compile the package again

.DEFAULT_GOAL := help
.PHONY: help demo quick test test-all programs lint format bench bench-all docs pictures dist clean

help:
	@echo "make demo    set up .venv and run the PUMA 560 round trip into $(OUT)/"
	@echo "make quick   a minute: the tests marked quick"
	@echo "make test    five minutes: what must pass before a merge, one case of each parametrised test"
	@echo "make test-all  all cases, slow tests, frameworks, browser, and tools/mutations.py"
	@echo "make lint    ruff check, ruff format --check, pyright"
	@echo "make format  let ruff rewrite the files"
	@echo "make bench   measure against Pinocchio"
	@echo "make bench-all  measure every function of five robots, and every peer that installs: tables, JSON, plots in $(OUT)/"
	@echo "make docs    build the documentation into site/, warnings are errors"
	@echo "make pictures  draw the animation of the README"
	@echo "make dist    build wheel and sdist, install the wheel in a fresh environment and try it"
	@echo "make clean   remove .venv and everything that was generated"

# Not .venv/bin/python: that is a link to the system's Python and carries its date, not that of the environment.
$(VENV)/made.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "linksweep needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>&1);" \
	       "say 'make PYTHON=/path/to/python3.11 ...'." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/%.stamp: $(VENV)/made.stamp pyproject.toml
	$(PIP) install --quiet --editable '.[$*]'
	touch $@

demo: $(VENV)/plot.stamp
	$(BIN)/linksweep demo --output $(OUT)

# Only the files that hold such tests: to collect the others takes longer than to run these.
quick: $(VENV)/test.stamp
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m 'quick and not slow' $(shell grep -rl --include='test_*.py' 'mark.quick' tests)

test: $(VENV)/test.stamp
	$(BIN)/python -m pytest $(PYTEST_ARGS)

# What make test may skip runs in test-all, which installs it. TORCH: the first of these that can be had, since what an
# index gives for plain torch may bring gigabytes of CUDA.
TORCH ?= torch==2.13.0 torch
$(VENV)/frameworks.stamp: $(VENV)/test.stamp $(VENV)/docs.stamp
	for torch in $(TORCH); do $(PIP) install --quiet "$$torch" && exit; done; exit 1
	$(PIP) install --quiet --editable '.[jax,torch,casadi,dask,opencl]' pocl-binary-distribution nvidia-cuda-nvrtc nvidia-cuda-nvcc cvxpy flatbuffers nbclient nbformat ipykernel hatchling lxml networkx
	touch $@

# A browser for the viewer and the site; an emulator and a compiler for 64-bit ARM; Octave for MATLAB. Without them their
# tests skip.
PROGRAMS := chromium chromedriver qemu-aarch64 aarch64-linux-gnu-gcc octave-cli
DEBIAN := chromium chromium-driver qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross octave
programs: $(VENV)/made.stamp
	@for name in $(PROGRAMS); do command -v $$name; done | wc -l | grep -qw $(words $(PROGRAMS)) || { \
	  test "$$(id -u)" = 0 || sudo="sudo -n"; apt="timeout 600 $$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq \
	    -o DPkg::Lock::Timeout=120"; \
	  echo "installing $(DEBIAN)"; $$apt update; $$apt install -y --no-install-recommends $(DEBIAN); \
	  } >$(VENV)/programs.log 2>&1 || echo "test-all goes without some of $(PROGRAMS): apt-get did not install" \
	    "them (see $(VENV)/programs.log), and tests that need them skip." >&2

# REST=1: without what `make test` has just passed on the same files (tests/conftest.py).
test-all: $(VENV)/frameworks.stamp programs
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m 'slow or not slow' $(if $(REST),--rest)
	$(BIN)/python tools/mutations.py

lint: $(VENV)/test.stamp $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/test.stamp
	$(BIN)/python benchmarks/against_pinocchio.py

# Peers beside Pinocchio and MuJoCo, which the tests bring: what does not install is left out, and named in the run.
PEERS ?= casadi jax adam-robotics mujoco-mjx cmeel-eigen
$(VENV)/peers.stamp: $(VENV)/test.stamp
	for peer in $(PEERS); do $(PIP) install --quiet "$$peer" || echo "bench-all goes without $$peer" >&2; done
	touch $@

bench-all: $(VENV)/peers.stamp
	mkdir -p $(OUT)
	$(BIN)/python benchmarks/native.py $(OUT)/native.so || echo "bench-all goes without Pinocchio in C++" >&2
	LINKSWEEP_NATIVE=$(OUT)/native.so $(BIN)/python benchmarks/peers.py --json $(OUT)/peers.json --plots $(OUT)
	LINKSWEEP_NATIVE=$(OUT)/native.so $(BIN)/python benchmarks/all_functions.py --json $(OUT)/all_functions.json

docs: $(VENV)/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pictures: $(VENV)/test.stamp
	$(BIN)/python tools/pictures.py

# What is released: built from the sources here, installed where none of them are seen, and tried.
dist: $(VENV)/dev.stamp
	rm -rf dist build/dist
	$(PIP) install --quiet build
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv build/dist
	build/dist/bin/python -m pip --disable-pip-version-check install --quiet dist/linksweep-*-py3-none-any.whl
	cd build/dist && bin/linksweep --version && bin/linksweep check puma560 && bin/python -c \
	  'import linksweep as ls, numpy as np; r = ls.load("puma560"); z = np.zeros(6); print(r.inverse_dynamics(z, z, z))'

clean:
	rm -rf $(VENV) out site dist build .pytest_cache .ruff_cache .hypothesis
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
