"""Pacing by host: one request at a time and a pause between two, also across processes.

The marks are small files, one a host, that hold the moment before which the host is to be left alone.
"""

from __future__ import annotations

import fcntl
import ipaddress
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, which needs no sparing."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Pace:
    """When a host may be asked next. `folder` None keeps the marks in memory, for this process alone."""

    def __init__(
        self,
        folder: Path | None,
        min_interval: float,
        intervals: Mapping[str, float],
        sleep: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        self._folder, self._min_interval, self._intervals = folder, min_interval, dict(intervals)
        self._sleep, self._clock = sleep, clock
        self._threads: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._marks: dict[str, float] = {}
        if folder:
            folder.mkdir(parents=True, exist_ok=True)

    def interval(self, host: str) -> float:
        """Seconds to leave between two requests to this host."""
        return self._intervals.get(host, 0.0 if is_loopback(host) else self._min_interval)

    @contextmanager
    def turn(self, host: str) -> Iterator[None]:
        """Hold the host for one exchange; everyone else who wants it waits."""
        with self._threads[host]:
            if self._folder is None or is_loopback(host):
                yield
                return
            with self._path(host, "turn").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield

    def wait(self, host: str) -> None:
        """Sleep until the host may be asked, and mark when it may be asked again."""
        pause = self._read(host) - self._clock()
        if pause > 0:
            self._sleep(pause)
        self._write(host, self._clock() + self.interval(host))

    def defer(self, host: str, seconds: float) -> None:
        """Leave the host alone for so long, in every process."""
        self._write(host, max(self._read(host), self._clock() + seconds))

    def _path(self, host: str, kind: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{re.sub(r'[^A-Za-z0-9.-]', '_', host)}.{kind}"

    def _read(self, host: str) -> float:
        if self._folder is None:
            return self._marks.get(host, 0.0)
        try:
            return float(self._path(host, "mark").read_text())
        except (OSError, ValueError):
            return 0.0

    def _write(self, host: str, moment: float) -> None:
        if self._folder is None:
            self._marks[host] = moment
        else:
            self._path(host, "mark").write_text(repr(moment))
