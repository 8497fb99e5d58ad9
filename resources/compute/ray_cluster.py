"""The Ray backend of compute: actors that build their worker once, on whichever machines the cluster has.

Every actor has one task at a time. Where an actor dies, its task goes back to the others and a new actor is asked for;
that it may never find room does not stop the rest. A worker that cannot be built anywhere ends the run.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from resources.compute.tasks import Task, WorkerSpec, distinct, limit_inner_threads
from resources.places import ROOT

_ATTEMPTS = 3
"""How often a task may be lost with its worker: twice may be two bad machines, three times is the task."""

_TOLD_EVERY = 60.0
"""Seconds of silence after which somebody who waits for a first worker is told what it waits for."""

# This module's messages; the caller decides where they go.
_LOG = logging.getLogger(__name__)


class ComputeError(RuntimeError):
    """The cluster cannot do the work; said in one line."""


class RayCompute:
    """Work on a Ray cluster.

    Args:
        address: the cluster's, ``auto`` for the one this machine belongs to; None starts one here.
        workers: actors; None is one for each ``cpus`` of the cluster.
        cpus: cores an actor needs.
        gpus: accelerators an actor needs, or a fraction of one.
        environment: Ray's ``runtime_env``; by default the project must lie at the same path on every machine.
    """

    def __init__(
        self,
        address: str | None = "auto",
        *,
        workers: int | None = None,
        cpus: float = 1,
        gpus: float = 0,
        environment: Mapping[str, Any] | None = None,
    ) -> None:
        self._address, self._workers, self._cpus, self._gpus = address, workers, cpus, gpus
        self._environment = dict(environment or {"env_vars": {"PYTHONPATH": str(ROOT)}})

    def run(self, worker: WorkerSpec, tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
        """See Compute. Actors are let go of at the end. ComputeError where no machine could ever hold one."""
        ray = _ray()
        if not ray.is_initialized():
            _join(ray, self._address)
        places = self._places(ray)
        crew = _Crew(ray, self._actor_class(ray), worker, self._wanted())
        try:
            crew.hire(self._workers or places)
            yield from crew.work(distinct(tasks))
        finally:
            crew.dismiss()

    def _places(self, ray: Any) -> int:
        """How many workers the cluster's machines hold at once; ComputeError where that is none."""
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        places = sum(_room(machine, self._cpus, self._gpus) for machine in machines)
        if not places:
            there = [f"{m.get('CPU', 0):g} cores and {m.get('GPU', 0):g} accelerators" for m in machines]
            held = "; ".join(dict.fromkeys(there)) or "none"
            raise ComputeError(
                f"a worker needs {self._wanted()}, and no machine of the cluster has that ({held}): "
                "start one that has, or ask for less with cpus_per_worker and gpus_per_worker"
            )
        return places

    def _wanted(self) -> str:
        return f"{self._cpus:g} cores and {self._gpus:g} accelerators"

    def _actor_class(self, ray: Any) -> Any:
        options = {"num_cpus": self._cpus, "num_gpus": self._gpus, "max_restarts": 0}
        return ray.remote(**options, runtime_env=self._environment)(Worker)


class Worker:
    """What lives in an actor: the worker, built once."""

    def __init__(self, worker: WorkerSpec, workers: int) -> None:
        self._worker, self._workers = worker, workers

    def ready(self) -> bool:
        """Build the worker; an exception says why that cannot be."""
        limit_inner_threads(self._workers)
        self._work = self._worker.build()
        return True

    def do(self, payload: Any) -> Any:
        """The result of one task."""
        return self._work(payload)


class _Crew:
    """Actors, the task of each, and the tasks that came back."""

    def __init__(self, ray: Any, actor_class: Any, worker: WorkerSpec, wanted: str) -> None:
        self._ray, self._actor_class, self._worker, self._wanted = ray, actor_class, worker, wanted
        self._has_worked = False
        self._actors: list[Any] = []
        self._waiting: dict[Any, tuple[Any, Task | None]] = {}
        self._returned: deque[Task] = deque()
        self._lost: dict[str, int] = {}
        self._failed_starts = 0
        self._size = 1

    def hire(self, count: int) -> None:
        self._size = count
        for _ in range(count):
            self._hire_one()

    def work(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, Any]]:
        idle: list[Any] = []
        exhausted = False
        while True:
            while idle and not (exhausted and not self._returned):
                task = self._returned.popleft() if self._returned else next(tasks, None)
                if task is None:
                    exhausted = True
                else:
                    actor = idle.pop()
                    self._waiting[actor.do.remote(task.payload)] = (actor, task)
            if exhausted and not self._returned and all(task is None for _, task in self._waiting.values()):
                return
            done = self._next_done()
            actor, task = self._waiting.pop(done)
            try:
                result = self._ray.get(done)
            except self._ray.exceptions.RayTaskError as error:
                raise _own_error(error) from error
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.OutOfMemoryError) as error:
                self._lose(actor, task, error)
                continue
            idle.append(actor)
            if task is not None:
                self._failed_starts = 0
                yield task, result

    def _next_done(self) -> Any:
        """Whatever is finished next; until a first worker is there, what is waited for is told once a minute."""
        while True:
            done, _ = self._ray.wait(list(self._waiting), num_returns=1, timeout=_TOLD_EVERY)
            if done:
                self._has_worked = True
                return done[0]
            if not self._has_worked:
                _LOG.warning("waiting for a worker: the cluster has not yet %s to spare", self._wanted)

    def dismiss(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []

    def _hire_one(self) -> None:
        actor = self._actor_class.remote(self._worker, self._size)
        self._actors.append(actor)
        self._waiting[actor.ready.remote()] = (actor, None)

    def _lose(self, actor: Any, task: Task | None, error: Exception) -> None:
        """Take a dead actor's task back and ask for another actor; too many losses in a row end the run."""
        self._actors.remove(actor)
        if task is None:
            self._failed_starts += 1
            if self._failed_starts >= _ATTEMPTS * self._size:
                raise ComputeError(f"no worker could be started: {_first_line(error)}") from error
        else:
            self._lost[task.key] = self._lost.get(task.key, 0) + 1
            if self._lost[task.key] >= _ATTEMPTS:
                raise ComputeError(f"{task.name} was lost {_ATTEMPTS} times: {_first_line(error)}") from error
            self._returned.append(task)
        self._hire_one()


def _join(ray: Any, address: str | None) -> None:
    """Connect to the cluster; ComputeError where there is none."""
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ComputeError(f"no Ray cluster is found at {address or 'this machine'}: {_first_line(error)}") from error


def _room(machine: Mapping[str, float], cpus: float, gpus: float) -> int:
    """How many workers one machine holds."""
    shares = [machine.get(name, 0.0) / wanted for name, wanted in (("CPU", cpus), ("GPU", gpus)) if wanted > 0]
    return int(min(shares, default=1.0) + 1e-9)


def _own_error(error: Any) -> BaseException:
    """What the work itself raised, in its own words, without the pages that Ray puts around it."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, Exception) else error.as_instanceof_cause()


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ComputeError("the Ray backend needs the extra 'ray': pip install strandline[ray]") from None
    return ray


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
