# What a commit must pass; continuous integration calls the same.
PYTHON ?= python
PATHS = tilelang grammar lowering autoschedule tests examples benchmarks tools docs/conf.py

.PHONY: site check format lint types test test-quick replay bench bench-compare gpu-check gpu-bench
check: lint types test

lint:
	$(PYTHON) -m ruff format --check $(PATHS)
	$(PYTHON) -m ruff check $(PATHS)

types:
	$(PYTHON) -m mypy

test:
	$(PYTHON) -m pytest -n 2 --dist worksteal

# The guide and the API reference as a site, in build/site; a link that leads nowhere is an error. Needs the extra [docs].
site:
	$(PYTHON) -m sphinx -q -W --keep-going -b html docs build/site

# The tests that need no compiler, without the slow ones: a few minutes.
test-quick:
	$(PYTHON) -m pytest -n 2 --dist worksteal -q --no-compiler -m "not (slow or gate or emulation or tools)"

format:
	$(PYTHON) -m ruff format $(PATHS)
	$(PYTHON) -m ruff check --fix $(PATHS)

# What the compiler makes of a fixed set of programs, beside the recorded baseline, or beside a revision of git (BASE=main): schedules,
# kernel IR, source, estimates, refusals.
BASE ?= baseline
replay:
	$(PYTHON) benchmarks/replay.py --against $(BASE) $(ARGUMENTS)

# A few operators of each class on this machine's processor, beside every peer that is installed, then what has no operator of its
# own, in ten minutes; each figure is appended to bench.jsonl with the machine and the commit. Called again at a commit it goes on.
bench:
	$(PYTHON) benchmarks/operators.py --selection --rounds 3 --limit-s 400 --this-commit --results bench.jsonl $(ARGUMENTS)
	-$(PYTHON) benchmarks/processor.py --only rows,transpose,calls,cold --rounds 3 --record bench.jsonl

# What became slower than in the last run on a processor of this model and number of threads.
bench-compare:
	$(PYTHON) benchmarks/history.py --results bench.jsonl $(ARGUMENTS)

# On a machine with a GPU; without one they say so and end with 3. A GROUP of gpu-bench is products, convolutions or memory. Both end
# in less than ten minutes and go on where they stopped. ARGUMENTS: of benchmarks/gpu.py (--only, --limit-s), or parts of tests.gpu.
gpu-check:
	$(PYTHON) -m tests.gpu $(ARGUMENTS)

gpu-bench:
	@test -n "$(GROUP)" || { echo "make gpu-bench GROUP=products, or convolutions, or memory"; exit 2; }
	$(PYTHON) benchmarks/gpu.py $(GROUP) $(ARGUMENTS)
