"""A function run in a child process, with a cap of CPU time and memory for each call.

Parsers of hostile input may run for ever, take all memory or crash the interpreter. Here one call does so without harm:
the child is replaced and the caller gets a status and a reason. The child stays for the next call, so a call costs no
start. The cap is CPU time, so that a busy machine does not change results; a tenfold wall-clock limit stands behind it.
"""

from __future__ import annotations

import importlib
import os
import pickle
import resource
import select
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from resources.places import ROOT

HEADER = struct.Struct("!Q")
"""Each message between the processes begins with its length."""
START_SECONDS = 120.0
"""Time for the child to import what it runs: some seconds, minutes on a machine that is starved."""


@dataclass(frozen=True)
class Outcome:
    """What a call came to: `ok` with its value, or `timeout`, `memory`, `crashed` or `error` with a reason."""

    status: str
    value: Any = None
    reason: str | None = None


class SandboxedFunction:
    """A function of foreign text in a child process with a budget: `with SandboxedFunction("module:name") as run: …`.

    Arguments and value must be picklable.

    seconds: CPU time for a call. megabytes: address space of the child, its interpreter included.
    """

    def __init__(self, target: str, seconds: float = 10.0, megabytes: int = 1024) -> None:
        self._target, self._seconds, self._megabytes = target, seconds, megabytes
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> SandboxedFunction:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, *arguments: Any) -> Outcome:
        """Run the function once. Never raises for what it does; RuntimeError where the child cannot start."""
        child = self._running()
        assert child.stdin is not None
        try:
            _send(child.stdin, arguments)
            outcome = self._receive(child, time.monotonic() + 10 * self._seconds + 1)
        except (EOFError, OSError):
            outcome = self._death(child)
        if outcome.status in {"timeout", "memory", "crashed"}:
            self.close()
        return outcome

    def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            budget = [str(self._seconds), str(self._megabytes)]
            command = [sys.executable, "-m", "resources.spans.sandbox", self._target, *budget]
            self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
            try:
                self._receive(self._child, time.monotonic() + START_SECONDS)
            except EOFError:
                self.close()
                raise RuntimeError(f"the child process for {self._target} could not start") from None
        return self._child

    def _receive(self, child: subprocess.Popen[bytes], deadline: float) -> Outcome:
        assert child.stdout is not None
        source = child.stdout.fileno()
        (size,) = HEADER.unpack(_read(source, HEADER.size, deadline))
        outcome = pickle.loads(_read(source, size, deadline))
        assert isinstance(outcome, Outcome)
        return outcome

    def _death(self, child: subprocess.Popen[bytes]) -> Outcome:
        """Why the child is gone, from its exit; a child that still runs has stalled."""
        try:
            code = child.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            return Outcome("timeout", reason=f"gave no answer within {10 * self._seconds:g} s")
        if -code == signal.SIGPROF:
            return Outcome("timeout", reason=f"took more than {self._seconds:g} s of CPU time")
        return Outcome("crashed", reason=f"ended the process (exit {code})")


def _read(source: int, size: int, deadline: float) -> bytes:
    pieces = bytearray()
    while len(pieces) < size:
        ready, _, _ = select.select([source], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(source, min(size - len(pieces), 1 << 20)) if ready else b""
        if not piece:
            raise EOFError
        pieces += piece
    return bytes(pieces)


def _send(target: BinaryIO | Any, value: Any) -> None:
    payload = pickle.dumps(value)
    target.write(HEADER.pack(len(payload)) + payload)
    target.flush()


def _attempt(function: Any, arguments: tuple[Any, ...], seconds: float) -> Outcome:
    """One call. The timer's signal has no handler, so it ends the process even inside C code."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return Outcome("ok", function(*arguments))
    except MemoryError:
        return Outcome("memory", reason="needed more memory than allowed")
    except RecursionError:
        return Outcome("error", reason="is nested too deeply")
    except Exception as error:
        return Outcome("error", reason=f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def serve(target: str, seconds: float, megabytes: int) -> None:
    """The child's life: announce readiness, then answer calls until its input ends.

    A system that does not know a cap of address space runs without one; the cap of time holds everywhere.
    """
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    module, _, name = target.partition(":")
    function = getattr(importlib.import_module(module), name)
    limit = megabytes * 1024 * 1024
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    _send(replies, Outcome("ok"))
    while header := sys.stdin.buffer.read(HEADER.size):
        arguments = pickle.loads(sys.stdin.buffer.read(HEADER.unpack(header)[0]))
        _send(replies, _attempt(function, arguments, seconds))


if __name__ == "__main__":
    from resources.spans import sandbox

    sandbox.serve(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
