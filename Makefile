# daqloom: demo · test · lint · bench · sanitize · fuzz · docs · clean
#
# Set-up runs by itself. What it makes: .venv (Python packages, daqloom among them), build (objects
# and logs), and, with root or a passwordless sudo, the Debian packages that are missing.
#
#   make PYTHON=/path/to/python    another interpreter than the first 3.11 or newer on PATH
#   make JOBS=8                    parallel compilations and tests (default: the number of cores)
#   make FUZZ_SECONDS=600 fuzz     time per fuzz target

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules --no-print-directory

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
CLANG ?= clang++-16
CLANG_FORMAT ?= clang-format-16

bin := .venv/bin
step := @scripts/step.sh
pip := $(bin)/python -m pip install --disable-pip-version-check -c constraints.txt

.PHONY: help demo test lint bench sanitize fuzz docs clean format
help:
	@echo "make demo      the ATLAS question answered, then events built for real: demo-output/"
	@echo "make test      engine tests (Release; ASan + UBSan) and Python tests"
	@echo "make lint      formatting, style and types"
	@echo "make format    let clang-format and ruff rewrite the sources"
	@echo "make bench     benchmarks of the engine and of the whole, as JSON in build/bench/results/"
	@echo "make sanitize  engine tests under ASan + UBSan and under ThreadSanitizer"
	@echo "make fuzz      each fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS))"
	@echo "make docs      the generated pages of docs/reference/"
	@echo "make clean     remove build/, .venv/, demo-output/ and the engine's stub"

demo: .venv/daqloom
	$(bin)/daqloom demo
	$(bin)/daqloom study run atlas-min-buffer --quick --store demo-output/store
	$(bin)/daqloom report atlas-min-buffer --quick --store demo-output/store \
		--output demo-output/atlas-min-buffer
	$(bin)/daqloom compare laptop --duration "10 s" --figure demo-output/laptop.html

# ---- checks -------------------------------------------------------------------------------------

test: test-release test-address test-python

.PHONY: test-python
test-python: build/packages/develop .venv/daqloom .venv/dev
	$(bin)/python -m pytest -q -n $(JOBS)

lint: build/packages/develop .venv/dev src/daqloom/_engine.pyi
	$(step) clang-format $(CLANG_FORMAT) --dry-run -Werror $(cpp_files)
	$(step) ruff-check $(bin)/ruff check --output-format concise .
	$(step) ruff-format $(bin)/ruff format --check .
	$(step) mypy $(bin)/mypy --strict src/daqloom

format: build/packages/develop .venv/dev
	$(CLANG_FORMAT) -i $(cpp_files)
	$(bin)/ruff check --quiet --fix .
	$(bin)/ruff format --quiet .

cpp_files = $(shell find engine benchmarks -name '*.[ch]pp')

sanitize: test-address test-thread

# ---- the engine's own builds: build/release, build/address, build/thread, build/bench, build/fuzz

configure = cmake -S . -B $(1) -G Ninja $(2)
debug := -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=$(CLANG)

.PHONY: test-release test-address test-thread
test-release: build/packages/develop
	$(step) configure-release $(call configure,build/release,-DCMAKE_BUILD_TYPE=Release -DDAQLOOM_TESTS=ON)
	$(step) build-release cmake --build build/release -j $(JOBS)
	$(call ctest,build/release)

test-address test-thread: test-%: build/packages/develop
	$(step) configure-$* $(call configure,build/$*,$(debug) -DDAQLOOM_TESTS=ON -DDAQLOOM_SANITIZE=$*)
	$(step) build-$* cmake --build build/$* -j $(JOBS)
	$(call ctest,build/$*)

# One line per failure and the totals; the passed ones stand in <build>/Testing/Temporary/LastTest.log.
ctest = @set -o pipefail; ctest --test-dir $(1) -j $(JOBS) --output-on-failure --no-tests=error \
	| grep -Ev '^ +Start|Passed +[0-9.]+ sec$$|^Internal|^$$'

bench: build/packages/bench .venv/daqloom
	$(step) configure-bench $(call configure,build/bench,-DCMAKE_BUILD_TYPE=Release -DDAQLOOM_BENCH=ON)
	$(step) build-bench cmake --build build/bench -j $(JOBS)
	@scripts/benchmarks.sh build/bench $(bin)/python

fuzz: build/packages/develop
	$(step) configure-fuzz $(call configure,build/fuzz,$(debug) -DDAQLOOM_FUZZ=ON -DDAQLOOM_SANITIZE=address)
	$(step) build-fuzz cmake --build build/fuzz -j $(JOBS)
	@for program in build/fuzz/programs_fuzz/*; do \
		corpus=build/fuzz/corpus/$$(basename $$program); mkdir -p $$corpus; \
		seeds=$$(find engine -type d -path "*/corpus/$$(basename $$program)"); \
		$$program -max_total_time=$(FUZZ_SECONDS) $$corpus $$seeds || exit 1; done

# The pages that are written from the code; tests fail when they are stale.
docs: docs/reference/scenario.md docs/reference/metrics.md docs/reference/study.md \
		docs/reference/software-switch.md docs/reference/device.md .venv/daqloom
	$(bin)/python -m daqloom.measure.counters docs/reference/operations.md

docs/reference/scenario.md: module := daqloom.scenario.reference
docs/reference/metrics.md: module := daqloom.metrics
docs/reference/study.md: module := daqloom.study.reference
docs/reference/software-switch.md: module := daqloom.softswitch.reference
docs/reference/device.md: module := daqloom.measure.device.reference
docs/reference/scenario.md docs/reference/metrics.md docs/reference/study.md \
docs/reference/software-switch.md docs/reference/device.md: .venv/daqloom .venv/dev
	$(bin)/python -m $(module) >build/$(@F)
	mv build/$(@F) $@

# ---- set-up: Debian packages, .venv, daqloom in it ------------------------------------------------

# What `make demo` needs, and what everything else needs on top.
packages_run := libexpected-dev libfabric-dev libfmt-dev $(foreach tool,g++ cmake ninja,\
	$(if $(shell command -v $(tool)),,$(tool:ninja=ninja-build)))
packages_develop := $(packages_run) ccache clang-16 clang-format-16 libbenchmark-dev \
	libclang-rt-16-dev libdpdk-dev libgtest-dev openvswitch-switch python3-os-ken \
	pkg-config tshark
packages_bench := $(packages_develop) iproute2 libopenmpi-dev liburing-dev openmpi-bin

build/packages/%: Makefile
	@lacking=$$(scripts/python.sh packages $(PYTHON)) && \
		scripts/step.sh packages-$* scripts/debian-packages.sh $(packages_$*) $$lacking
	@mkdir -p $(@D) && touch $@

.venv/bin/python: | build/packages/run
	$(step) venv $$(scripts/python.sh path $(PYTHON)) -m venv --clear .venv

.venv/run .venv/dev: .venv/%: pyproject.toml constraints.txt | .venv/bin/python
	@$(bin)/python scripts/requirements.py build run $* >.venv/requirements-$*.txt
	$(step) pip-$* $(pip) -r .venv/requirements-$*.txt
	@touch $@

# Installed, not editable: nothing is rebuilt on import. The build folder is kept, so that a change
# recompiles what it touches; folders are listed too, so that a removed file counts as a change.
sources = $(shell find engine src scenarios studies -not -name '*_test.?pp' -not -name '*_bench.cpp' \
	-not -name '*_fuzz.cpp' -not -path '*/__pycache__*' -not -name '*.md' -not -name '_*.pyi')

# With the software switch, which needs DPDK, unless it is for the demo only.
packages_of_it := $(if $(filter-out demo,$(MAKECMDGOALS)),develop,run)

.venv/daqloom: .venv/run build/packages/$(packages_of_it) CMakeLists.txt pyproject.toml $(wildcard cmake/*) $(sources)
	$(step) build-daqloom $(pip) --no-build-isolation --no-deps \
		--config-settings build-dir=build/wheel \
		--config-settings cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON \
		--config-settings cmake.define.CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) .
	@touch $@

# mypy looks for the engine's stub, which the build writes, beside the sources. Neither it nor the
# folder's new date is a reason to build again.
src/daqloom/_engine.pyi: .venv/daqloom
	@cp .venv/lib/python3*/site-packages/daqloom/_*.pyi src/daqloom/
	@touch .venv/daqloom $@

clean:
	rm -rf build .venv demo-output src/daqloom/_engine.pyi src/daqloom/_switch.pyi
