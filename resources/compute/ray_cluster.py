"""The Ray backend of compute: actors that build their worker once, on whichever machines the cluster has.

Every actor has one task at a time. Where an actor dies, its task goes back to the others and a new actor is asked for;
that it may never find room does not stop the rest. A worker that cannot be built anywhere ends the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from resources.compute.tasks import Task, WorkerSpec, distinct, limit_inner_threads
from resources.places import ROOT

_ATTEMPTS = 3


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
        """See Compute. Actors are let go of at the end."""
        ray = _ray()
        if not ray.is_initialized():
            ray.init(address=self._address, log_to_driver=False, configure_logging=False)
        crew = _Crew(ray, self._actor_class(ray), worker)
        try:
            crew.hire(self._workers or max(1, int(ray.cluster_resources().get("CPU", 1) // max(self._cpus, 0.01))))
            yield from crew.work(distinct(tasks))
        finally:
            crew.dismiss()

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

    def __init__(self, ray: Any, actor_class: Any, worker: WorkerSpec) -> None:
        self._ray, self._actor_class, self._worker = ray, actor_class, worker
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
            (done, *_), _ = self._ray.wait(list(self._waiting), num_returns=1)
            actor, task = self._waiting.pop(done)
            try:
                result = self._ray.get(done)
            except self._ray.exceptions.RayTaskError as error:
                raise error.as_instanceof_cause() from error
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.OutOfMemoryError) as error:
                self._lose(actor, task, error)
                continue
            idle.append(actor)
            if task is not None:
                self._failed_starts = 0
                yield task, result

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
                raise ComputeError(f"task {task.key} was lost {_ATTEMPTS} times: {_first_line(error)}") from error
            self._returned.append(task)
        self._hire_one()


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ComputeError("the Ray backend needs the extra 'ray': pip install strandline[ray]") from None
    return ray


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
