"""What a run waits for: another run that holds the pool of its step is named, and Ctrl-C ends the wait."""

import select
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

import dagster as dg

LOOK_EVERY = 10.0
"""Seconds between two looks at the pools: often enough for a person who waits, rare enough for the database."""

ENDED = 0
"""What tells the watcher that the run is over; no signal has this number."""


@contextmanager
def told(instance: dg.DagsterInstance, terminal: TextIO, run_id: str) -> Iterator[None]:
    """While the context is open, say once for each holder what this run waits for.

    Dagster keeps a Ctrl-C back until a step begins, which a step that waits for its pool does not do. Here it is
    noticed beside the run: one that waits is ended at once, as Dagster ends one; one that works is left to Dagster.
    Afterwards the run stands in no queue: a place that is left there would hold back those behind it.
    """
    heard, wakes = socket.socketpair()
    wakes.setblocking(False)
    watcher = threading.Thread(target=_watch, args=(instance, terminal, run_id, heard), daemon=True)
    with heard, wakes, _woken_by_signals(wakes):
        watcher.start()
        try:
            yield
        finally:
            wakes.send(bytes([ENDED]))
            watcher.join()
            instance.event_log_storage.free_concurrency_slots_for_run(run_id)


def blocked_by(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    """A sentence for each full pool on which a step of this run waits."""
    storage = instance.event_log_storage
    lines = []
    for pool in sorted(storage.get_concurrency_keys()):
        info = storage.get_concurrency_info(pool)
        holders = {slot.run_id for slot in info.claimed_slots} - {run_id}
        pending = [step for step in info.pending_steps if step.run_id == run_id and step.assigned_timestamp is None]
        if pending and holders:
            steps = ", ".join(sorted({step.step_key for step in pending}))
            lines.append(f"{steps} waits for the pool `{pool}`, which run {', '.join(sorted(holders))} holds")
    return lines


def _watch(instance: dg.DagsterInstance, terminal: TextIO, run_id: str, heard: socket.socket) -> None:
    """Look at the pools until the run is over; a SIGINT that comes while the run waits ends the main thread's wait."""
    said: set[str] = set()
    while True:
        ready, _, _ = select.select([heard], [], [], LOOK_EVERY)
        numbers = heard.recv(64) if ready else b""
        if ENDED in numbers:
            return
        lines = blocked_by(instance, run_id)
        if signal.SIGINT in numbers and lines:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        for line in lines:
            if line not in said:
                said.add(line)
                terminal.write(f"\n  {line}\n")
                terminal.flush()


@contextmanager
def _woken_by_signals(wakes: socket.socket) -> Iterator[None]:
    """Let every signal write its number to the socket; only the main thread of a process can ask for that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGUSR1, _interrupt)
    other = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(other)
        signal.signal(signal.SIGUSR1, before)


def _interrupt(_: int, __: FrameType | None) -> None:
    raise dg.DagsterExecutionInterruptedError
