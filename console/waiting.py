"""What a run waits for: another run that holds the pool of its step is named, so that silence has a reason."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import dagster as dg

LOOK_EVERY = 10.0
"""Seconds between two looks at the pools: often enough for a person who waits, rare enough for the database."""


@contextmanager
def told(instance: dg.DagsterInstance, terminal: TextIO) -> Iterator[None]:
    """While the context is open, say once for each holder what a pending step waits for."""
    ended = threading.Event()

    def watch() -> None:
        said: set[str] = set()
        while not ended.wait(LOOK_EVERY):
            for line in blocked_by(instance):
                if line not in said:
                    said.add(line)
                    terminal.write(f"\n  {line}\n")
                    terminal.flush()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def blocked_by(instance: dg.DagsterInstance) -> list[str]:
    """A sentence for each full pool on which a step of another run waits."""
    storage = instance.event_log_storage
    lines = []
    for pool in sorted(storage.get_concurrency_keys()):
        info = storage.get_concurrency_info(pool)
        holders = {slot.run_id for slot in info.claimed_slots}
        pending = [step for step in info.pending_steps if step.assigned_timestamp is None]
        if pending and holders:
            steps = ", ".join(sorted({step.step_key for step in pending}))
            lines.append(f"{steps} waits for the pool `{pool}`, which run {', '.join(sorted(holders))} holds")
    return lines
