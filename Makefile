# demo, test, test-all, fuzz, sanitize, bench and lint each build .venv from nothing when it is missing or older than the package's own files.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
PACKAGE_FILES := pyproject.toml setup.py metaphrase_setuptools.py $(wildcard runtime/*.pyx runtime/*.pxi runtime/*.h runtime/abi3/*.pyx)

.PHONY: demo test test-all fuzz sanitize stress bench gpu lint clean

demo: $(VENV)/ready
	$(BIN)/python examples/digits.py
	$(BIN)/python examples/kepler.py
	$(BIN)/python examples/escape.py

test: $(VENV)/ready
	METAPHRASE_TESTS="quick $(METAPHRASE_TESTS)" $(BIN)/python -P -m pytest -n $(WORKERS) tests

# As a whole, what `test` takes in turns (tests/turns.py).
test-all: $(VENV)/ready
	$(BIN)/python -P -m pytest -n $(WORKERS) tests

PROGRAMS ?= 2000
# On a GPU float32 sums are made in another order, which the plan `precision` would tell.
ON_GPU = plain,vmap,grad,sizes,stores,containers,objects,dtypes,failures,lengths,transformed

fuzz: $(VENV)/ready
	PYTHONPATH=tests $(BIN)/python -P -m fuzz.campaign --programs $(PROGRAMS) --workers $(WORKERS) --folder build/fuzz
	PYTHONPATH=tests:tests/gpu:tests/native $(BIN)/python -P -m fuzz.campaign --gpu --plans $(ON_GPU) \
	    --programs $$(($(PROGRAMS) / 10)) --workers $(WORKERS) --folder build/fuzz-gpu
	PYTHONPATH=tests $(BIN)/python -P -m fuzz.kept --programs $$(($(PROGRAMS) / 10))

THEMES ?=

sanitize: $(VENV)/ready
	PYTHONPATH=tests:tests/native $(BIN)/python -P -m sanitize --workers $(WORKERS) --folder build/sanitize $(THEMES)

stress: $(VENV)/ready
	PYTHONPATH=tests $(BIN)/python -P -m stress.campaign --folder build/stress

bench: $(VENV)/ready-bench
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

# With a device only: asked first, because what it takes is large.
gpu: $(VENV)/ready
	@$(PYTHON) tests/gpu/device.py
	@$(MAKE) --no-print-directory $(VENV)/ready-gpu
	$(BIN)/python -P -m pytest tests/gpu -m gpu
	@command -v compute-sanitizer > /dev/null || { echo "compute-sanitizer is missing: NVIDIA's CUDA toolkit has it"; exit 1; }
	@for tool in memcheck racecheck; do \
	    echo "== $$tool"; \
	    compute-sanitizer --tool $$tool --error-exitcode 1 $(BIN)/python -P -m pytest tests/gpu -m gpu -k test_primitive -q || exit 1; \
	done
	$(BIN)/python benchmarks/gpu_times.py --markdown

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	@# mypy knows nothing of setup.py's mapping: it is shown the package as it is installed, by links.
	rm -rf build/typed && mkdir -p build/typed/metaphrase
	ln -s $(CURDIR)/pysrc/* $(CURDIR)/astpasses $(CURDIR)/runtime $(CURDIR)/cli build/typed/metaphrase/
	MYPYPATH=build/typed $(BIN)/mypy -p metaphrase

$(VENV)/ready: $(PACKAGE_FILES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "metaphrase needs Python 3.11 or newer; run make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,examples,lint]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -e '.[gpu-test]' || true
	@$(BIN)/python -c 'from metaphrase.runtime.nvrtc import find_nvrtc; find_nvrtc()' 2>/dev/null || \
		echo "NVRTC, the compiler of CUDA C, could not be installed here: what needs it is not tested, or fails"
	@touch $@

$(VENV)/ready-bench: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

$(VENV)/ready-gpu: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[gpu]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info runtime/dispatch.c runtime/*.so runtime/abi3/dispatch.c runtime/abi3/*.so
