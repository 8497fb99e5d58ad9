# run · test · ui · check · calibrate · bench: each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# CPU build of torch where the platform has one; any torch that satisfies constraints.txt will do
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: run test ui check calibrate bench clean

$(VENV)/run.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --constraint constraints.txt --editable ".[gguf]"
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp
	$(INSTALL) --constraint constraints.txt --editable ".[dev]"
	@touch $@

run: $(VENV)/run.stamp            ## date the default model on real input and print the report
	$(BIN)/python launch.py run

ui: $(VENV)/run.stamp             ## the Dagster UI on 127.0.0.1:3000
	$(BIN)/python launch.py ui

test: $(VENV)/dev.stamp           ## the whole suite
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(VENV)/dev.stamp          ## style, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

calibrate: $(VENV)/run.stamp      ## how the estimators do on planted truth, into calibration.recoveries
	$(BIN)/python launch.py calibrate

bench: $(VENV)/dev.stamp          ## speed, side by side with the plain way
	$(BIN)/python launch.py bench

clean:                            ## remove the environment; data stays
	rm -rf $(VENV)
