"""A cluster that can never hold a worker is refused at once, and what is waited for, lost or wrong is said."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest

from resources.compute import ray_cluster
from resources.compute.ray_cluster import ComputeError, RayCompute
from resources.compute.tasks import Task, WorkerSpec

SPEC = WorkerSpec("tests.unit.adapters.compute.test_compute:squarer", {})


class RayTaskError(Exception):
    """As Ray's: pages of a remote traceback, with the work's own error inside."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause
        super().__init__("ray::Worker.do()\n  File ...\n" * 20)


class RayActorError(Exception):
    """The worker died."""


class FakeRay:
    """A cluster of the given machines: what is asked of an actor is computed when it is waited for."""

    class exceptions:  # noqa: N801 - the name that ray gives it
        RayTaskError, RayActorError = RayTaskError, RayActorError

        class OutOfMemoryError(Exception):
            """As Ray's."""

    def __init__(self, *machines: dict[str, float], silent: int = 0, dies: bool = False) -> None:
        self.machines, self.silent, self.dies = machines, silent, dies
        self.hired = 0

    def is_initialized(self) -> bool:
        return True

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": dict(m)} for m in self.machines] + [
            {"Alive": False, "Resources": {"CPU": 9.0, "GPU": 9.0}}
        ]

    def remote(self, **_: Any) -> Any:
        return lambda cls: self._actor_class(cls)

    def _actor_class(self, cls: type) -> Any:
        ray = self

        class Handle:
            @staticmethod
            def remote(*arguments: Any) -> Any:
                ray.hired += 1
                made = cls(*arguments)

                class Actor:
                    ready = Call(made.ready)
                    do = Call(made.do, ray.dies)

                return Actor()

        return Handle

    def wait(self, waiting: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        assert timeout > 0
        if self.silent:
            self.silent -= 1
            return [], waiting
        return waiting[:1], waiting[1:]

    def get(self, call: Any) -> Any:
        return call()

    def kill(self, actor: Any) -> None:
        """Nothing lives."""


class Call:
    """A remote method."""

    def __init__(self, method: Any, dies: bool = False) -> None:
        self._method, self._dies = method, dies

    def remote(self, *arguments: Any) -> Any:
        def call() -> Any:
            if self._dies:
                raise RayActorError("the machine is gone")
            try:
                return self._method(*arguments)
            except Exception as error:
                raise RayTaskError(error) from error

        return call


def run(monkeypatch: pytest.MonkeyPatch, ray: FakeRay, tasks: Iterable[Task] = (), **settings: Any) -> list[Any]:
    monkeypatch.setattr(ray_cluster, "_ray", lambda: ray)
    return list(RayCompute(**settings).run(SPEC, tasks))


@pytest.mark.parametrize(
    ("machines", "settings"),
    [
        ([{"CPU": 8}], {"gpus": 1}),
        ([{"CPU": 8, "GPU": 1}], {"gpus": 2}),
        ([{"CPU": 4}, {"CPU": 4}], {"cpus": 8}),
        ([{"CPU": 1}, {"GPU": 1}], {"cpus": 1, "gpus": 1}),
        ([], {}),
    ],
)
def test_what_no_machine_has_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, machines: list[dict[str, float]], settings: dict[str, float]
) -> None:
    with pytest.raises(ComputeError, match="no machine of the cluster has that") as refused:
        run(monkeypatch, FakeRay(*machines), [Task("1", 1)], **settings)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("machines", "settings", "workers"),
    [
        ([{"CPU": 4}, {"CPU": 3}], {"cpus": 2}, 3),
        ([{"CPU": 16, "GPU": 2}], {"gpus": 1}, 2),
        ([{"CPU": 16, "GPU": 1}], {"gpus": 0.1}, 10),
        ([{"CPU": 16, "GPU": 4}], {"gpus": 1, "workers": 3}, 3),
    ],
)
def test_as_many_workers_are_hired_as_fit(
    monkeypatch: pytest.MonkeyPatch, machines: list[dict[str, float]], settings: dict[str, float], workers: int
) -> None:
    ray = FakeRay(*machines)
    done = run(monkeypatch, ray, [Task("3", 3)], **settings)
    assert [value for _, value in done] == [9]
    assert ray.hired == workers


def test_waiting_for_a_first_worker_is_not_silent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert len(run(monkeypatch, FakeRay({"CPU": 1}, silent=2), [Task("3", 3)])) == 1
    assert caplog.text.count("has not yet 1 cores and 0 accelerators to spare") == 2


def test_a_lost_task_says_which_shard_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("0f3a", 3, "shard 2 of pile")
    with pytest.raises(ComputeError, match=r"^shard 2 of pile was lost 3 times: the machine is gone$"):
        run(monkeypatch, FakeRay({"CPU": 1}, dies=True), [task])


def test_an_error_of_the_work_comes_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "_ray", lambda: FakeRay({"CPU": 1}))
    worker = WorkerSpec("tests.unit.adapters.compute.test_compute:squarer", {"fails_on": 3})
    with pytest.raises(KeyError) as raised:
        list(RayCompute().run(worker, [Task("3", 3)]))
    assert str(raised.value) == "'no square of 3'"


def test_no_cluster_at_an_address_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoCluster(FakeRay):
        def is_initialized(self) -> bool:
            return False

        def init(self, **_: Any) -> None:
            raise ConnectionError("Could not find any running Ray instance.\nPlease specify ...")

    with pytest.raises(ComputeError, match=r"^no Ray cluster is found at auto: Could not find any running Ray"):
        run(monkeypatch, NoCluster())
