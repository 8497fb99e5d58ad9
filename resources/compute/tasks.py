"""One adapter for heavy work, two backends: threads of this process, or actors of a Ray cluster. Same results.

Work is a worker and tasks. A worker is named by an importable factory and its arguments, so that it can be built
anywhere and loads what it needs once; a task is a payload under a key that names its content. Results come as they are
finished, so that the caller can store them; a task that was lost with its worker is repeated, and nothing else is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from importlib import import_module
from threading import Lock
from typing import Any, Protocol

Work = Callable[[Any], Any]
"""From a payload to its result."""


@dataclass(frozen=True)
class WorkerSpec:
    """How a worker is made: ``module:callable``, called with ``kwargs``, gives a callable from payload to result.

    The callable must stand being called by several threads at once.
    """

    factory: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> Work:
        """The worker, made in this process."""
        module, _, name = self.factory.partition(":")
        work: Work = getattr(import_module(module), name)(**self.kwargs)
        return work


@dataclass(frozen=True)
class Task:
    """A piece of work; ``key`` names its content, so that equal tasks are the same task.

    ``label`` is what people call it, for messages; by default its key.
    """

    key: str
    payload: Any
    label: str = ""

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.label or self.key


class Compute(Protocol):
    """Where work is done."""

    def run(self, worker: WorkerSpec, tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
        """Each distinct task with its result, as they are finished, in any order.

        Tasks are drawn only a little ahead of the work. An exception of the work itself ends the run.
        """


class LocalCompute:
    """Work in threads of this process. ``threads`` None is one a core; arrays are then computed without inner threads.

    Many small operations on independent data scale with threads that never wait for one another.
    """

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"work needs at least one thread, not {threads}")
        self._threads = threads or _cores()

    def run(self, worker: WorkerSpec, tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
        """See Compute. The worker is made when the first task is there, and let go of at the end."""
        shared = _Shared(worker)
        running: dict[Future[Any], Task] = {}
        with ThreadPoolExecutor(self._threads, initializer=limit_inner_threads, initargs=(self._threads,)) as pool:
            try:
                for task in distinct(tasks):
                    running[pool.submit(shared, task.payload)] = task
                    if len(running) > self._threads:
                        yield from _finished(running)
                while running:
                    yield from _finished(running)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


class _Shared:
    """The worker that all threads share, made by the first of them."""

    def __init__(self, worker: WorkerSpec) -> None:
        self._worker, self._lock = worker, Lock()
        self._work: Work | None = None

    def __call__(self, payload: Any) -> Any:
        with self._lock:
            if self._work is None:
                self._work = self._worker.build()
        return self._work(payload)


def distinct(tasks: Iterable[Task]) -> Iterator[Task]:
    """Tasks without repeats of a key, drawn one by one."""
    seen: set[str] = set()
    for task in tasks:
        if task.key not in seen:
            seen.add(task.key)
            yield task


def limit_inner_threads(workers: int) -> None:
    """Give this thread its share of the cores for what torch computes in it, or less where OMP_NUM_THREADS says so."""
    import torch

    asked = os.environ.get("OMP_NUM_THREADS", "")
    share = max(1, _cores() // workers)
    torch.set_num_threads(min(share, int(asked)) if asked.isdigit() and int(asked) > 0 else share)


def _finished(running: dict[Future[Any], Task]) -> Iterator[tuple[Task, Any]]:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        task = running.pop(future)
        yield task, future.result()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
