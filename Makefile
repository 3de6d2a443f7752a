# Every target sets up what it needs, on a fresh machine too.
VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/.ready
TESTS := tests

.PHONY: demo test interleave simulate conform mutants bench lint format lock clean torture soak

demo: $(READY)
	$(PYTHON) -m airflow_provider_kpipe.sandbox.demo $(if $(ONCE),--once)

# In four processes, for two cores: they wait most of the time, for Airflow, or for a broker that does not come back.
test: $(READY)
	$(PYTHON) -m pytest -n 4 $(TESTS)

# Random schedules of runs, kills, resets and checkpoints, for so long, or the one of a seed.
SECONDS := 600
interleave: $(READY)
	SECONDS_TO_INTERLEAVE=$(SECONDS) SEED=$(SEED) $(PYTHON) -m pytest tests/interleaving/test_interleaving.py

# The real engine over a model of Kafka, in virtual time: many seeded schedules, or the one of a seed with its trace.
# With MUTANTS=1, which mutants that alone notices.
SEEDS := 10000
PROCESSES := 1
simulate: $(READY)
ifdef MUTANTS
	$(PYTHON) -m tests.simulation.mutants $(NAMES)
else
	$(PYTHON) -m tests.simulation.run $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --processes $(PROCESSES) \
		--results tests/results/simulation.json)
endif

# The model of Kafka under it against a real broker: the same random calls, for so long.
conform: $(READY)
	$(PYTHON) -m tests.simulation.conformance $(or $(SEED),0) --seconds $(SECONDS)

# Pipelines of every kind on three brokers under a seeded schedule of faults, and a checker; KEEP is a folder for all of it.
torture: MINUTES := 10
torture: $(READY)
	PYTHONPATH=.:spark_jobs:tests/kit $(PYTHON) -m tests.torture.run --minutes $(MINUTES) \
		$(if $(SEED),--seed $(SEED)) $(if $(KEEP),--keep $(KEEP)) $(if $(RESULTS),--results $(RESULTS))

# Production without a pause: does anything grow, or stay behind, or get lost? Samples and logs stay in SAMPLES.
soak: MINUTES := 15
SAMPLES := .soak
soak: $(READY)
	$(PYTHON) -m tests.soak.run --minutes $(MINUTES) --samples $(SAMPLES) --figures tests/results/soak.json

# Makes the sources wrong in many small ways, one at a time, and says which of them no test notices.
mutants: $(READY)
	$(PYTHON) -m tests.mutants.run $(NAMES)

bench: $(READY)
	$(PYTHON) bench/run.py $(if $(QUICK),--quick) $(if $(WORK),--work "$(WORK)")

lint: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(READY)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# Pins every requirement again, with hashes and without the address of any registry.
lock: $(READY)
	for name in bootstrap dev build runtime spark-worker bench-spark bench-airflow-kafka; do \
		$(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --custom-compile-command "make lock" \
			--output-file requirements/$$name.txt requirements/$$name.in >/dev/null; \
	done

clean:
	rm -rf $(VENV) $(VENV)-* dist .mypy_cache .pytest_cache .ruff_cache

$(READY): requirements/bootstrap.txt requirements/dev.txt pyproject.toml scripts/setup.sh
	scripts/setup.sh $(VENV)
