# Every target sets up what it needs, on a fresh machine too. `make` alone lists them.
.DEFAULT_GOAL := help
VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/.ready
TESTS := tests

.PHONY: help demo docs test coverage interleave simulate conform mutants bench lint format lock clean torture soak

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## a broker, an Airflow and a Spark, with pipelines at work (ONCE=1 ends by itself)
	$(PYTHON) -m demo $(if $(ONCE),--once)

# In four processes, for two cores: they wait most of the time, for Airflow, or for a broker that does not come back.
test: $(READY) ## every test; TESTS=tests/unit for a part
	$(PYTHON) -m pytest -n 4 $(TESTS)

coverage: $(READY) ## which branches the unit and broker tests reach together, with a floor
	$(PYTHON) -m coverage erase
	$(PYTHON) -m coverage run -m pytest -n 4 tests/unit tests/broker
	$(PYTHON) -m coverage combine --quiet
	$(PYTHON) -m coverage report

# Random schedules of runs, kills, resets and checkpoints, for so long, or the one of a seed.
SECONDS := 600
interleave: $(READY) ## random schedules on a real broker for SECONDS, or the one of SEED
	SECONDS_TO_INTERLEAVE=$(SECONDS) SEED=$(SEED) $(PYTHON) -m pytest tests/interleaving/test_interleaving.py

# The real engine over a model of Kafka, in virtual time: many seeded schedules, or the one of a seed with its trace.
# With MUTANTS=1, which mutants that alone notices.
SEEDS := 10000
PROCESSES := 1
simulate: $(READY) ## the engine over a model of Kafka: SEEDS schedules, or the one of SEED with its trace
ifdef MUTANTS
	$(PYTHON) -m tests.simulation.mutants $(NAMES)
else
	$(PYTHON) -m tests.simulation.run $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --processes $(PROCESSES) \
		$(if $(RESULTS),--results $(RESULTS)/simulation.json))
endif

# The model of Kafka under it against a real broker: the same random calls, for so long.
conform: $(READY) ## the model of Kafka against a real broker, for SECONDS
	$(PYTHON) -m tests.simulation.conformance $(or $(SEED),0) --seconds $(SECONDS)

# Pipelines of every kind on three brokers under a seeded schedule of faults, and a checker; KEEP is a folder for all of it.
# RESULTS=tests/results keeps the figures of this, of simulate and of soak for the page about guarantees.
torture: MINUTES := 10
torture: $(READY) ## pipelines of every kind on three brokers under faults, for MINUTES
	PYTHONPATH=.:spark_jobs:tests/segments $(PYTHON) -m tests.torture.run --minutes $(MINUTES) \
		$(if $(SEED),--seed $(SEED)) $(if $(KEEP),--keep $(KEEP)) $(if $(RESULTS),--results $(RESULTS))

# Production without a pause: does anything grow, or stay behind, or get lost? Samples and logs stay in SAMPLES.
soak: MINUTES := 15
SAMPLES := .soak
soak: $(READY) ## production without a pause inside a real Airflow, for MINUTES
	$(PYTHON) -m tests.soak.run --minutes $(MINUTES) --samples $(SAMPLES) --figures $(or $(RESULTS),$(SAMPLES))/soak.json

# Makes the sources wrong in many small ways, one at a time, and says which of them no test notices.
mutants: $(READY) ## make the sources wrong, one place at a time: what no test notices (NAMES chooses)
	$(PYTHON) -m tests.mutants.run $(NAMES)

bench: $(READY) ## side by side with the peers; QUICK=1 for a short one, WORK=json for a part
	$(PYTHON) bench/run.py $(if $(QUICK),--quick) $(if $(WORK),--work "$(WORK)")

# In an environment of its own. With --quiet, MkDocs would not count the warnings that --strict fails on.
SITE := site
SITE_READY := $(VENV)-docs/.ready
docs: $(SITE_READY) ## the documentation as a site, in SITE; a link that leads nowhere fails it
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --site-dir $(SITE)

lint: $(READY) ## ruff, and mypy --strict
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(READY) ## ruff, applied
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# Pins every requirement again, with hashes and without the address of any registry.
lock: $(READY) ## pin every requirement again, with hashes
	for name in bootstrap dev build runtime spark-worker bench-spark bench-airflow-kafka docs; do \
		$(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --custom-compile-command "make lock" \
			--output-file requirements/$$name.txt requirements/$$name.in >/dev/null; \
	done

clean: ## remove the environments and caches
	rm -rf $(VENV) $(VENV)-* dist site .mypy_cache .pytest_cache .ruff_cache

$(READY): requirements/bootstrap.txt requirements/dev.txt pyproject.toml scripts/setup.sh
	scripts/setup.sh $(VENV)

$(SITE_READY): requirements/docs.txt | $(READY)
	$(VENV)/bin/uv venv --quiet --clear --python $(PYTHON) $(VENV)-docs
	$(VENV)/bin/uv pip sync --quiet --require-hashes --no-build --python $(VENV)-docs/bin/python requirements/docs.txt
	touch $@
