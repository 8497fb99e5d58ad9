"""Work comes back whole, each task once, as it is finished; errors end a run and are the work's own."""

import threading
import time

import pytest

from resources.compute.ray_cluster import RayCompute
from resources.compute.tasks import LocalCompute, Task, WorkerSpec
from resources.configured import ComputeResource

BUILT = []


def squarer(offset=0, fails_on=None, pause=0.0):
    """A worker: the square of a number, plus an offset."""
    BUILT.append(threading.get_ident())

    def work(number):
        time.sleep(pause)
        if number == fails_on:
            raise KeyError(f"no square of {number}")
        return number * number + offset

    return work


def spec(**kwargs):
    return WorkerSpec("tests.unit.adapters.compute.test_compute:squarer", kwargs)


def tasks(numbers):
    return (Task(str(number), number) for number in numbers)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_distinct_task_comes_back_once_with_its_result(threads) -> None:
    done = list(LocalCompute(threads).run(spec(offset=1), tasks([1, 2, 3, 2, 1])))
    assert sorted((task.key, value) for task, value in done) == [("1", 2), ("2", 5), ("3", 10)]


def test_the_worker_is_built_once_and_only_where_there_is_work() -> None:
    BUILT.clear()
    list(LocalCompute(3).run(spec(), tasks(range(20))))
    assert len(BUILT) == 1
    list(LocalCompute(3).run(spec(), tasks([])))
    assert len(BUILT) == 1


def test_results_come_while_tasks_are_still_drawn() -> None:
    drawn = []

    def drawing():
        for number in range(50):
            drawn.append(number)
            yield Task(str(number), number)

    results = LocalCompute(2).run(spec(), drawing())
    next(results)
    assert len(drawn) <= 6
    results.close()


def test_an_error_of_the_work_ends_the_run_as_it_is() -> None:
    with pytest.raises(KeyError, match="no square of 3"):
        list(LocalCompute(2).run(spec(fails_on=3), tasks(range(10))))


def test_leaving_half_way_waits_for_what_runs_and_starts_nothing_more() -> None:
    before = threading.active_count()
    results = LocalCompute(2).run(spec(pause=0.02), tasks(range(100)))
    next(results)
    results.close()
    assert threading.active_count() == before


def test_a_backend_is_chosen_by_name() -> None:
    assert isinstance(ComputeResource(workers=2).open(), LocalCompute)
    assert isinstance(ComputeResource(backend="ray").open(), RayCompute)
    with pytest.raises(ValueError, match="local or ray"):
        ComputeResource(backend="cloud").open()
    with pytest.raises(ValueError, match="at least one"):
        LocalCompute(0)
