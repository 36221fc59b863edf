# make demo   set everything up, ship the example notebook, print a URL that answers
# make test   set everything up, run every test (real engine, gateway and platform)
# make stop   stop the demo and leave nothing behind
# make check  style, types, architecture

export PYTHON
STATE ?= .taxiway
PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: demo test unit check stop setup setup-dev bench clean

setup:
	@scripts/setup

setup-dev:
	@scripts/setup dev

demo: setup
	@.venv/bin/python examples/demo.py --state $(STATE)

test: setup-dev
	@.venv/bin/python -m pytest -q

unit: setup-dev
	@.venv/bin/python -m pytest -q -m "not processes"

check: setup-dev
	@.venv/bin/ruff check src tests benchmarks examples/demo.py
	@.venv/bin/ruff format --check src tests benchmarks examples/demo.py
	@.venv/bin/mypy
	@.venv/bin/lint-imports

stop:
	@test -x .venv/bin/taxiway || { echo "nothing was ever started here"; exit 0; }; .venv/bin/taxiway down --state $(STATE)

bench: setup-dev
	@.venv/bin/python benchmarks/path.py

clean: stop
	rm -rf .venv .taxiway
