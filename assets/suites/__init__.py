"""Quality suites, one module a family: plain data that ``assets/quality.py`` turns into blocking checks."""
