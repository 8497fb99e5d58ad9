# run · test · ui · check · calibrate · bench: each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# CPU build of torch where the platform has one; any torch that satisfies constraints.txt will do
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
FITS = -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))'

.PHONY: run test ui check calibrate bench clean

$(VENV)/run.stamp: pyproject.toml constraints.txt
	@$(PYTHON) $(FITS) || { echo "error: Strandline needs Python 3.11 to 3.14, and $(PYTHON) is none of them;" \
		"name one that is: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(BIN)/python $(FITS) 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing into $(VENV), which takes some minutes" >&2
	@$(INSTALL) --constraint constraints.txt --editable ".[gguf]" || { echo "error: pip could not install what is needed" \
		"(above it says why); what it reads from is shown by: $(BIN)/python -m pip config list" >&2; exit 1; }
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
