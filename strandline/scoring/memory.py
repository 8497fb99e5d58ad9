"""What an exhausted memory looks like; what then happens to the work in hand is decided in ``engine``."""

from __future__ import annotations

_WORDS = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "defaultcpuallocator",
)
"""What torch's allocators say on processors and accelerators, in small letters."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, on an accelerator or in the process."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in _WORDS)
