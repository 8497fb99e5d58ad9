"""Asking models about releases, and the rows of the release probe."""
