# daqloom: demo · develop · test-fast · test · lint · soak · bench · sanitize · fuzz · docs · site · wheel ·
# deb · clean
#
# Set-up runs by itself. It makes .venv (Python packages, and daqloom from src/), build (objects
# and logs), and, with root or a passwordless sudo, installs the Debian packages that are missing.
#
#   make PYTHON=/path/to/python    another interpreter than the first 3.11 or newer on PATH
#   make JOBS=8                    parallel compilations (default: the number of cores)
#   make test-fast IN=src/daqloom/study    the quick tests of one folder of src/daqloom or engine
#   make FUZZ_SECONDS=600 fuzz     time per fuzz target

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules --no-print-directory
# Bytecode files (.pyc) halve the time to import the tests.
unexport PYTHONDONTWRITEBYTECODE

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
TARGET ?= *
# Versions of clang: that of Debian 12, else that of Debian 13.
CLANG := $(or $(CLANG),$(shell . /etc/os-release 2>/dev/null; [ "$$VERSION_ID" = 12 ] && echo 16 || echo 19))
CLANG_FORMAT ?= clang-format-$(CLANG)

bin := .venv/bin
step := @scripts/step.sh
pip := $(bin)/python -m pip --disable-pip-version-check

.PHONY: help demo develop test test-fast soak lint format bench sanitize fuzz docs site wheel deb clean
help:
	@echo "The loop: edit, make test-fast IN=<the folder>, make test-fast, make lint test"
	@echo
	@echo "make develop   the engine for trying changes: one file is compiled in seconds"
	@echo "make test-fast the tests that need no other process and no network; IN=engine/systems,"
	@echo "               IN=src/daqloom/study or IN=packages/daqloom-adapters: those of that folder"
	@echo "make test      engine tests (Release; ASan + UBSan) and Python tests"
	@echo "make lint      formatting, style, types, spelling and shell scripts"
	@echo "make format    let clang-format and ruff rewrite the sources"
	@echo "make hooks     format and lint what changed before each commit (pre-commit)"
	@echo
	@echo "make demo      the ATLAS question answered, then events built for real: demo-output/"
	@echo "make soak      exhaustive and long forms of tests, and new random examples, before a release"
	@echo "make bench     benchmarks of the engine and of the whole, as JSON in build/bench/results/"
	@echo "make sanitize  engine tests under ASan + UBSan and under ThreadSanitizer"
	@echo "make fuzz      each fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS)); TARGET=mep_fuzz: that one"
	@echo "make docs      the generated pages of docs/reference/"
	@echo "make site      the documentation as a site, in build/site/: open index.html in a browser"
	@echo "make wheel     the wheels of daqloom and of packages/, and the sdist, in dist/"
	@echo "make deb       Debian packages for this release of Debian, in dist/"
	@echo "make clean     remove build/, .venv/, demo-output/, dist/ and the modules in src/"

demo: module-release
	$(bin)/daqloom demo
	$(bin)/daqloom study run atlas-min-buffer --quick --store demo-output/store
	$(bin)/daqloom report atlas-min-buffer --quick --store demo-output/store \
		--output demo-output/atlas-min-buffer
	{ cat scenarios/laptop.toml && $(bin)/daqloom calibrate --transport shm --quiet && \
		echo "shared_cores = $$(nproc)"; } >demo-output/laptop.toml
	$(bin)/daqloom compare demo-output/laptop.toml --methods "simulate, measure" \
		--set run.duration="100 ms" --duration "2 s" --figure demo-output/laptop.html

# ---- checks -------------------------------------------------------------------------------------

test: test-release test-address test-python

# Parallel tests: 1.5 per core, because tests of processes and networks often wait.
parallel_tests := $(shell echo $$(($(JOBS) + $(JOBS) / 2)))

pytest := $(bin)/python -m pytest -q -n $(parallel_tests) --dist worksteal

.PHONY: test-python
test-python: .venv/packages module-release build/packages/test
	$(pytest)

# Quick tests start no process and use no network. With IN, those of one folder.
test-fast:
	@scripts/test-fast.sh $(JOBS) $(IN)

soak: .venv/packages module-release build/packages/test
	$(pytest) -m soak
	$(pytest) -m "not soak" --hypothesis-profile random

# mypy reads the stubs of the modules, which their build writes.
lint: build/packages/develop .venv/dev module-release
	$(step) clang-format $(CLANG_FORMAT) --dry-run -Werror $(cpp_files)
	$(step) ruff-check $(bin)/ruff check --output-format concise .
	$(step) ruff-format $(bin)/ruff format --check .
	$(step) mypy $(bin)/mypy --strict src/daqloom $(addsuffix /src,$(packages))
	$(step) mypy-tests env MYPYPATH=$(subst $() ,:,$(wildcard packages/*/src packages/*/tests)) \
		$(bin)/mypy --config-file tests/mypy.ini tests benchmarks $(addsuffix /tests,$(packages))
	$(step) codespell $(bin)/codespell $(prose)
	$(step) shellcheck $(bin)/shellcheck scripts/*.sh .ci/run

format: build/packages/develop .venv/dev
	$(CLANG_FORMAT) -i $(cpp_files)
	$(bin)/ruff check --quiet --fix .
	$(bin)/ruff format --quiet .

.PHONY: hooks
hooks: build/packages/develop .venv/dev
	$(bin)/pre-commit install

# Misspelt words in tests/ are data of the tests.
prose := README.md CONTRIBUTING.md CHANGELOG.md benchmarks cmake docs engine examples packages scenarios \
	scripts src studies

cpp_files = $(shell find engine benchmarks examples -name '*.[ch]pp')

sanitize: test-address test-thread

# ---- the engine's builds, one folder of build/ for each preset of CMakePresets.json ---------------

configure = $(step) configure-$(1) cmake --preset $(1) $(if $(filter address thread fuzz,$(1)),\
	-DCMAKE_CXX_COMPILER=clang++-$(CLANG))
build = $(step) build-$(1) cmake --build build/$(1) -j $(JOBS)

# Python modules, installed beside the Python sources. `make demo` alone does not install DPDK, so it
# builds no software switch.
module_packages := $(if $(filter-out demo,$(MAKECMDGOALS)),develop,run)
.PHONY: module-release module-develop module-debug
module-release module-develop module-debug: module-%: .venv/daqloom build/packages/$(module_packages)
	$(call configure,$*)
	$(call build,$*) --target daqloom_python
	@cmake --install build/$* --component python --prefix src >build/log/install-$*.log
	@[ $* != develop ] || ln -sf build/develop/compile_commands.json compile_commands.json

develop: module-develop

.PHONY: configure-develop
configure-develop: .venv/daqloom build/packages/develop
	$(call configure,develop)

.PHONY: test-release test-address test-thread
test-release: module-release build/packages/test
	$(call configure,release) -DDAQLOOM_TESTS=ON
	$(call build,release)
	$(call engine_tests,release)

test-address test-thread: test-%: build/packages/test
	$(call configure,$*)
	$(call build,$*)
	$(call engine_tests,$*)

engine_tests = @scripts/engine-tests.sh build/$(1) $(parallel_tests)

bench: build/packages/bench module-release
	$(call configure,bench)
	$(call build,bench)
	@scripts/benchmarks.sh build/bench $(bin)/python

fuzz: build/packages/test
	$(call configure,fuzz)
	$(call build,fuzz)
	@for program in build/fuzz/programs_fuzz/$(TARGET); do \
		corpus=build/fuzz/corpus/$$(basename $$program); mkdir -p $$corpus; \
		seeds=$$(find engine -type d -path "*/corpus/$$(basename $$program)"); \
		$$program -max_total_time=$(FUZZ_SECONDS) $$corpus $$seeds || exit 1; done

# Wheels for this interpreter and, in one, for 3.12 and newer: from the first of these that runs, as a
# version manager may have a command for a version that it does not run.
WHEEL_PYTHONS ?= $(bin)/python $(firstword $(foreach each,python3.13 python3.12 python3.14,\
	$(shell $(each) -c 'import sys; print(sys.executable)' 2>/dev/null)))
wheel: build/packages/run .venv/venv
	$(step) wheels scripts/wheels.sh $(WHEEL_PYTHONS)

# Packages of Debian: daqloom, daqloom-switch and libdaqloom-dev.
deb: build/packages/deb .venv/run
	$(step) deb scripts/deb.sh $(bin)/python

# The pages that are written from the code; tests fail when they are stale.
generated := $(addprefix docs/reference/,$(addsuffix .md,scenario metrics study software-switch device glossary))
docs: $(generated) module-release
	for kind in scenario study switch device published; do \
		$(bin)/daqloom schema $$kind --output schemas/$$kind.json || exit; done
	$(bin)/python -m daqloom.control.reference docs/reference/operations.md
	$(bin)/python scripts/llms.py >llms.txt
	$(bin)/python -m daqloom.study.reproduction.pages docs/explanation/*.md

docs/reference/scenario.md: module := daqloom.scenario.file.reference
docs/reference/metrics.md: module := daqloom.results.metrics
docs/reference/study.md: module := daqloom.study.file.reference
docs/reference/software-switch.md: module := daqloom.softswitch.reference
docs/reference/device.md: module := daqloom.device.reference
docs/reference/glossary.md: module := daqloom.terms.glossary
$(generated): module-release .venv/packages
	$(bin)/python -m $(module) >build/$(@F)
	mv build/$(@F) $@

# With search, the help of every command, the Python functions and the C++ headers; a dead link fails.
site: .venv/dev module-release
	$(step) site env NO_MKDOCS_2_WARNING=1 $(bin)/mkdocs build --strict

# ---- set-up: Debian packages, .venv, daqloom in it ------------------------------------------------

# Packages for `make demo`; for builds, lint and the quick tests; for `make test`; for `make bench`; for
# `make deb`.
packages_run := libexpected-dev libfabric-dev libfmt-dev $(foreach tool,g++ cmake ninja,\
	$(if $(shell command -v $(tool)),,$(tool:ninja=ninja-build)))
packages_develop := $(packages_run) ccache clang-format-$(CLANG) libdpdk-dev libgtest-dev pkg-config \
	tshark
packages_test := $(packages_develop) chromium clang-$(CLANG) ethtool ibsim-utils iproute2 \
	iputils-ping libbenchmark-dev libclang-rt-$(CLANG)-dev libmpich-dev libopenmpi-dev \
	libpangoft2-1.0-0 mpich munge nftables openmpi-bin openssh-client openssh-server opensm \
	openvswitch-switch prometheus slurm-client slurmctld slurmd
packages_bench := $(packages_test) liburing-dev
packages_deb := $(packages_run) build-essential cmake debhelper libdpdk-dev lintian ninja-build pkg-config \
	python3-dev python3-venv

build/packages/%: Makefile
	@lacking=$$(scripts/python.sh packages $(PYTHON)) && \
		scripts/step.sh packages-$* scripts/debian-packages.sh $(packages_$*) $$lacking
	@mkdir -p $(@D) && touch $@

.venv/venv: | build/packages/run
	$(step) venv $$(scripts/python.sh path $(PYTHON)) -m venv --clear .venv
	@touch $@

# Distributions beside daqloom, each in a folder of packages/.
packages := $(patsubst %/pyproject.toml,%,$(wildcard packages/*/pyproject.toml))

.venv/run: requirements := build run figures cluster live
.venv/dev: requirements := build run all site dev packages
.venv/dev: $(addsuffix /pyproject.toml,$(packages))
.venv/run .venv/dev: .venv/%: pyproject.toml constraints.txt | .venv/venv
	@$(bin)/python scripts/requirements.py $(requirements) >.venv/requirements-$*.txt
	$(step) pip-$* $(pip) install -c constraints.txt -r .venv/requirements-$*.txt
	@touch $@

# The command and the metadata; the sources stay in src/, where a change is seen at once.
.venv/daqloom: pyproject.toml .venv/run
	$(step) pip-daqloom $(pip) install --no-build-isolation --no-deps --editable . \
		$(addprefix --config-settings ,wheel.cmake=false wheel.py-api=py3 \
			wheel.packages=src/daqloom editable.mode=inplace)
	@touch $@

.venv/packages: .venv/dev .venv/daqloom
	$(step) pip-packages $(pip) install --no-build-isolation --no-deps \
		$(addprefix --editable ,$(packages))
	@touch $@

clean:
	rm -rf build .venv demo-output dist compile_commands.json src/daqloom/_engine.* src/daqloom/_switch.* src/daqloom/*mpi_*
