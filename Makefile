# Everything nbkit does on a developer's machine; `make` alone lists it. Needs Python 3.11 or newer, nothing else.
PYTHON ?= python3
BIN := .venv/bin
BUILD_RECORDER := $(BIN)/python -m nbkit.capture.native.build
STATIC := nbkit/views/static
# A worker per core; a file's tests stay together, as they share what they record, and come in the order of tests/tiers.py.
WORKERS ?= $(shell getconf _NPROCESSORS_ONLN)
# A worker that crashed ends the run with the name of its test: with files kept together, a run that goes on never ends.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0
# The recorder, where there is a compiler, and the widgets' own tests take a core each.
BEFORE_TESTS = $(BUILD_RECORDER) & \
  if command -v node >/dev/null; then (cd widgets && node --test); else echo "no node: the tests of widgets/ are left out"; fi; \
  status=$$?; wait; exit $$status
# What the choice of the recorder can change, and in full: not replay, graphs or times, which have no recorder, nor how opdiff
# judges two tensors and runs the step a second time, which is in Python with both.
RECORDED := $(addprefix tests/capture/,raw recorder frames step check calls diff distributed operators/capture) tests/magics/options/test_optrace_options.py \
  $(addprefix --ignore=tests/capture/diff/,shadow patterns kernels rechecks random)
# What judges values: kernels that sum in another order must not change what is said.
JUDGED := tests/numerics tests/simulated $(addprefix tests/capture/,diff check replay native)
# Stand-ins for lesser CPUs: which kernels torch, oneDNN and MKL take. MKL heeds the first of its two on every x86 CPU.
CPUS ?= sse4 avx2
sse4 := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_CBWR=COMPATIBLE
avx2 := ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2
# What the tests need has what the demo needs.
DEMO := $(or $(wildcard .venv/.installed-test),.venv/.installed-demo)
# Which environments of make test-versions: all, or such as ONLY="colab"; those of torch take gigabytes each.
ONLY ?=
# Which tests of make test-python and make test-cpus: all, or such as TIER="not full".
TIER ?=
.DEFAULT_GOAL := help
# Python keeps what it compiled, as it does by default: tests start many processes that import the same.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nbkit needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; name another one with make PYTHON=...")'
	$(PYTHON) -m venv .venv

# One stamp per extra: a second call is quick, and a changed dependency list installs again. Several extras by one run of
# pip, as a second one reads all dependencies again.
COMMA := ,
.venv/.installed-%: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$*]"
	@touch $@ $(addprefix .venv/.installed-,$(subst $(COMMA), ,$*))

.PHONY: venv
venv: .venv/.installed-test,lint  ## make .venv with everything a developer needs
	@$(BUILD_RECORDER) || true

.PHONY: demo
demo: $(DEMO)  ## trace, time and check a training step headless, write the report out/demo.html
	$(BIN)/python notebooks/demo.py

# One sentence where there is no compiler: all but its own tests works without.
.PHONY: recorder
recorder: .venv/.installed-test  ## build optrace's native recorder into the user's cache (needs a C++ compiler)
	$(BUILD_RECORDER)

.PHONY: test
test: .venv/.installed-test  ## prove a clone in five minutes: all tests but the slow ones; the widgets' own where node is
	@$(BEFORE_TESTS)
	$(PYTEST) -m "not full"

.PHONY: test-all
test-all: .venv/.installed-test  ## every test: also JupyterLab, notebooks, all browser tests, every case of long lists
	@$(BEFORE_TESTS)
	$(PYTEST)

.PHONY: slow-tests
slow-tests: .venv/.installed-test  ## run every test, and write which are too slow for make test (tests/slow.txt)
	NBKIT_SLOW_TESTS=1 $(PYTEST)

.PHONY: test-python
test-python: .venv/.installed-test  ## the tests of recording once more, with the Python recorder
	NBKIT_RECORDER=python $(PYTEST) -q -m "$(TIER)" $(RECORDED)

.PHONY: test-cpus
test-cpus: $(CPUS:%=test-cpu-%)  ## the tests that judge values, with the kernels of lesser CPUs (SSE4, then AVX2); CPUS=sse4 for one

test-cpu-%: .venv/.installed-test
	$($*) $(PYTEST) -q -m "$(TIER)" $(JUDGED)

.PHONY: test-versions
test-versions: .venv/.installed-test  ## nbkit with other versions of Python, torch, pandas and IPython; ONLY="colab torch-2.8" for some
	$(BIN)/python -m tests.versions $(ONLY)

.PHONY: mutations
mutations: .venv/.installed-test  ## break a line in each of 20 modules, in a copy, and say whether make test sees it
	$(BIN)/python -m tests.mutation

.PHONY: lab
lab: .venv/.installed-lab  ## open JupyterLab on the notebooks
	$(BIN)/jupyter lab notebooks/01_trace_a_step.ipynb

.PHONY: bench
bench: .venv/.installed-bench .venv/.installed-test  ## measure the recorders against their peers, and the widgets at 1,000,000 rows
	$(BIN)/python bench/overhead.py
	$(BIN)/python bench/timing.py
	$(BIN)/python bench/opdiff.py
	$(BIN)/python bench/faults.py
	$(BIN)/python bench/correct_models.py
	$(BIN)/python bench/watching.py
	$(BIN)/python bench/cost_memory.py
	$(BIN)/python bench/compare_times.py
	$(BIN)/python bench/views/flame_difference.py
	$(BIN)/python bench/readers/chrome_trace.py
	$(BIN)/python bench/readers/memory_snapshot.py
	$(BIN)/python bench/readers/oneflow_log.py
	$(BIN)/python bench/views/op_table.py
	$(BIN)/python bench/views/flamegraph.py
	$(BIN)/python bench/views/report.py

.PHONY: lint
lint: .venv/.installed-lint  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: format
format: .venv/.installed-lint  ## ruff: mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: types
types: .venv/.installed-lint  ## mypy, strict, on nbkit and sample_models; tsc on the widgets once `make bundle` has installed it
	$(BIN)/mypy
	@if [ -x widgets/node_modules/.bin/tsc ]; then cd widgets && npm run --silent types; else echo "no tsc: the types of widgets/ are not checked (make bundle installs it)"; fi

.PHONY: layers
layers: .venv/.installed-test  ## a module imports only from layers below its own
	$(BIN)/python -m pytest -q tests/repository/test_layers.py

.PHONY: docs
docs: .venv/.installed-test  ## make the pages of docs/ that come from the code (a test holds them to it)
	@$(BUILD_RECORDER)
	$(BIN)/python -m docs.generator

.PHONY: notebooks
notebooks: .venv/.installed-test  ## run every notebook headless
	$(BIN)/python -m pytest -q tests/repository/test_notebooks.py

.PHONY: wheel-check
wheel-check: .venv/.installed-test  ## install nbkit into an empty environment as README.md says, and use it there
	$(BIN)/python -m tests.wheel

.PHONY: bundle
bundle:  ## build the widgets' front-end bundle (needs node and npm)
	cd widgets && npm ci --no-audit --no-fund && npm run build

.PHONY: bundle-check
bundle-check:  ## prove that the committed bundle is what its source builds
	@rm -rf out/static && mkdir -p out && cp -R $(STATIC) out/static
	$(MAKE) bundle
	diff -r out/static $(STATIC)

.PHONY: hooks
hooks: .venv/.installed-lint  ## run the checks before every commit
	$(BIN)/pre-commit install

.PHONY: clean
clean:  ## remove what was built, but not .venv
	rm -rf out build dist widgets/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
