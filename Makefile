# What a commit must pass; continuous integration calls the same.
PYTHON ?= python
PATHS = tilelang grammar lowering autoschedule tests examples benchmarks

.PHONY: check format lint types test
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
