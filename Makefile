# What a commit must pass; continuous integration calls the same.
PYTHON ?= python
PATHS = tilelang grammar lowering autoschedule tests examples benchmarks

.PHONY: check format lint types test bench gpu-check gpu-bench
check: lint types test

lint:
	$(PYTHON) -m ruff format --check $(PATHS)
	$(PYTHON) -m ruff check $(PATHS)

types:
	$(PYTHON) -m mypy

test:
	$(PYTHON) -m pytest -n 2

format:
	$(PYTHON) -m ruff format $(PATHS)
	$(PYTHON) -m ruff check --fix $(PATHS)

# A few operators of each class on this machine's processor, beside NumPy and PyTorch, in five minutes; called again it goes on.
bench:
	$(PYTHON) benchmarks/operators.py --selection --rounds 3 --limit-s 300 --results bench.jsonl $(ARGUMENTS)

# On a machine with a GPU; without one they say so and end with 3. A GROUP of gpu-bench is products, convolutions or memory. Both end
# in less than ten minutes and go on where they stopped. ARGUMENTS: of benchmarks/gpu.py (--only, --limit-s), or parts of tests.gpu.
gpu-check:
	$(PYTHON) -m tests.gpu $(ARGUMENTS)

gpu-bench:
	@test -n "$(GROUP)" || { echo "make gpu-bench GROUP=products, or convolutions, or memory"; exit 2; }
	$(PYTHON) benchmarks/gpu.py $(GROUP) $(ARGUMENTS)
