"""Model weights on this machine: finding, checking and loading them."""


class ModelLoadError(RuntimeError):
    """A model that cannot be loaded, said in one line."""
