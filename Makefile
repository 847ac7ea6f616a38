# Everything a checkout needs, in a .venv of its own.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Data sets at hand; tests that need them skip where they are not.
ifneq ($(wildcard ../shared/data),)
export COEM_DATA ?= $(abspath ../shared/data)
endif

# An editable install knows the modules that existed when it was made: the list of files is part
# of what it depends on, their contents are not.
FILES := $(shell find src/coem -name '*.py' | sort | cksum | cut -d' ' -f1)
READY := $(VENV)/.ready-$(FILES)
LIGHT := $(VENV)/.light-$(FILES)

# Ninja uses all processors by itself; make, which stands in for it, has to be told.
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc 2>/dev/null || echo 2)

FULL := [dev,datasets,bench]
QUIETLY := install -q --no-compile --disable-pip-version-check

# $(call install,EXTRAS): this checkout in its .venv, with what the extras name. A pip at hand makes
# the .venv faster than the module venv, which brings one of its own and compiles all of it.
define install
	@test -d $(VENV) || (command -v uv >/dev/null && uv venv --seed -q -p $(PYTHON) $(VENV)) \
	  || ($(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python $(QUIETLY) pip) 2>/dev/null \
	  || $(PYTHON) -m venv --clear $(VENV)
	@if command -v uv >/dev/null; then \
	  uv pip install -q -p $(BIN)/python -e '.$(1)'; \
	else \
	  $(BIN)/python -m pip $(QUIETLY) -e '.$(1)'; \
	fi
endef

.PHONY: setup light test coverage test-oldest test-newest sanitize fuzz lint format bench bench-scale compare experiments \
  papers demo clean

setup: $(READY)

# CMake keeps options of an earlier build, so that both set-ups have to name theirs.
$(READY): export SKBUILD_CMAKE_DEFINE := COEM_THIS_MACHINE=OFF
$(LIGHT): export SKBUILD_CMAKE_DEFINE := COEM_THIS_MACHINE=ON

$(READY): pyproject.toml CMakeLists.txt $(wildcard src/kernels/*)
	$(call install,$(FULL))
	@rm -f $(VENV)/.ready-* && touch $@

# What runs the program, on this machine, and no developers' tools; a full set-up has it already.
light: $(if $(wildcard $(READY)),$(READY),$(LIGHT))

$(LIGHT): pyproject.toml CMakeLists.txt $(wildcard src/kernels/*)
	$(call install,)
	@rm -f $(VENV)/.light-* && touch $@

# Bytecode is kept, whatever the caller says: tests start the program dozens of times, and each of
# two workers would rewrite the assertions of all tests again.
TEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist worksteal

test: setup
	$(TEST)

# What of the library the tests run, which takes half as long again: before a release, and after
# a change that adds many lines.
coverage: setup
	$(TEST) --cov --cov-report=term:skip-covered

# For hostile input.
SECONDS := 60

# The kernels under AddressSanitizer and UndefinedBehaviorSanitizer: a build of its own, in an
# environment that has the packages of .venv and not the checkout. Memory that nanobind keeps until
# the end is no leak. libstdc++ comes first as well, or its exceptions are not seen.
SANITIZED := build/sanitize
SANITIZERS = $(foreach lib,libasan.so libstdc++.so,$(shell $(CXX) -print-file-name=$(lib)))

UNDER_SANITIZERS = PYTHONPATH=$(CURDIR)/$(SANITIZED)/site LD_PRELOAD="$(SANITIZERS)" PYTHONMALLOC=malloc \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
  $(SANITIZED)/venv/bin/python

sanitize: setup
	@test -d $(SANITIZED)/venv || $(BIN)/python -m venv --without-pip $(SANITIZED)/venv
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  > $$($(SANITIZED)/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/of_setup.pth
	$(BIN)/python -m pip install -q --no-deps --no-compile --upgrade --disable-pip-version-check \
	  --target $(SANITIZED)/site -C build-dir=$(SANITIZED)/kernels \
	  -C cmake.define.COEM_SANITIZE=ON -C cmake.define.COEM_THIS_MACHINE=ON .
	$(UNDER_SANITIZERS) -m pytest -q -p no:cacheprovider tests/kernels tests/test_sparse.py \
	  -k "not instruction_sets_agree"  # there is one
	$(UNDER_SANITIZERS) -m tests.fuzz --target matrices --target models --seconds $(SECONDS)

# The tests with the oldest versions that pyproject.toml claims, and with the newest there are, each
# in a .venv of its own; the extension is built with them too. TESTS=tests/io runs a part.
# Old pips take the constraints of a build from PIP_CONSTRAINT, new ones from PIP_BUILD_CONSTRAINT.
TESTS ?= tests src/coem
OTHER = PYTHONDONTWRITEBYTECODE= .venv-$(1)/bin/python -m pytest -n 2 --dist worksteal $(TESTS)

# $(call other,NAME,OPTIONS OF PIP): this checkout in .venv-NAME.
define other
	@test -d .venv-$(1) || $(PYTHON) -m venv .venv-$(1)
	.venv-$(1)/bin/python -m pip install -q --no-compile --disable-pip-version-check $(2) \
	  --config-settings=build-dir=build/$(1)
endef

# Encoders bring packages that ask for newer versions than coem does: their tests skip here. Old
# versions of scikit-learn give pytest an iterator of checks, which pytest 9 warns of, and read the
# names of columns by a protocol that polars 1.40 warns of and polars 2 no longer has. Old versions of
# matplotlib call functions by names that pyparsing 3.3 warns of.
OLD := -e '.[dask,datasets,excel,languages,pandas,plot]' hmmlearn hypothesis nltk 'polars<1.40' \
  'pyparsing<3.3' 'pytest<9' pytest-cov pytest-xdist

test-oldest: export PIP_CONSTRAINT = $(CURDIR)/build/oldest.txt
test-oldest: export PIP_BUILD_CONSTRAINT = $(PIP_CONSTRAINT)
test-oldest:
	@mkdir -p build
	$(PYTHON) .ci/oldest.py > build/oldest.txt
	$(call other,oldest,$(OLD))
	$(call OTHER,oldest)

test-newest:
	$(call other,newest,--upgrade --upgrade-strategy eager -e '.[test]')
	$(call OTHER,newest)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPY_NUM_WORKERS=2 $(BIN)/mypy
	$(BIN)/mypy tests/typing/script.py
	$(BIN)/lint-imports
	$(BIN)/codespell src tests docs benchmarks experiments *.md

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	$(BIN)/python benchmarks/bench_em.py
	$(BIN)/python benchmarks/spherical.py
	$(BIN)/python benchmarks/gaussians.py
	$(BIN)/python benchmarks/k_means.py
	$(BIN)/python benchmarks/chain.py
	$(BIN)/python benchmarks/agglomerate.py
	$(BIN)/python benchmarks/aspect.py
	@test -z "$$COEM_DATA" || $(BIN)/python benchmarks/text_views.py
	@test -z "$$COEM_DATA" || $(BIN)/python benchmarks/latent.py
	@test -z "$$COEM_DATA" || $(BIN)/python benchmarks/report.py
	@test -z "$$COEM_DATA" || $(BIN)/python benchmarks/program.py
	$(BIN)/python benchmarks/serve.py

# Rounds on large corpora, on a cluster of this machine and with many components; what a round costs,
# and runs that are killed. It takes an hour and some gigabytes of the disk; ROWS=2000000 is the
# corpus of docs/scale.md.
ROWS := 200000

bench-scale: setup
	$(BIN)/python benchmarks/out_of_core.py --rows $(ROWS)
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/many_components.py
	$(BIN)/python benchmarks/large_tables.py --rows 50000 --words 200000 --components 200
	$(BIN)/python benchmarks/dask_rounds.py --rows $(ROWS)
	$(BIN)/python benchmarks/cost_model.py
	$(BIN)/python benchmarks/cluster_simulation.py
	$(BIN)/python benchmarks/kills_ingest.py --kills 100
	$(BIN)/python benchmarks/kills.py --kills 100

# Hostile input for all that reads what strangers wrote: make fuzz SECONDS=600
fuzz: setup
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)

# Time, memory and results of this checkout against another one: make compare OLD=../before
compare: setup
	@test -n "$(OLD)" || (echo "usage: make compare OLD=path-of-the-other-checkout [ARGS=--quick]"; exit 2)
	$(BIN)/python benchmarks/side_by_side.py --old $(OLD)/src --new src $(ARGS)

experiments: setup
	$(BIN)/python experiments/few_labels.py
	$(BIN)/python experiments/few_labels.py --defaults
	$(BIN)/python experiments/lengths.py
	$(BIN)/python experiments/groups.py
	$(BIN)/python experiments/streaming.py
	$(BIN)/python experiments/sizes.py
	$(BIN)/python experiments/inits.py
	$(BIN)/python experiments/inits.py --parts
	$(BIN)/python experiments/couple_mixtures.py
	$(BIN)/python experiments/trust.py
	$(BIN)/python experiments/topic_names.py
	$(BIN)/python experiments/batches.py
	$(BIN)/python experiments/noise_views.py
	$(BIN)/python experiments/grid.py
	$(BIN)/python experiments/segmentation.py
	$(BIN)/python experiments/segmentation.py --choose

# The experiments of the papers: results beside their pages, then the pages. It goes on where it was.
papers: setup
	$(BIN)/coem reproduce --out docs/papers/results
	$(BIN)/coem reproduce --pages docs/papers

demo: light
	$(BIN)/coem demo

clean:
	rm -rf build $(VENV) .venv-oldest .venv-newest
