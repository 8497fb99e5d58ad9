"""Calls in a child process: what a hostile call may do, and that the next one is not harmed."""

from __future__ import annotations

import os
import time

import pytest

from resources.spans.sandbox import SandboxedFunction

HERE = __name__


def double(value: str) -> str:
    print("noise on standard output")
    return value * 2


def spin() -> None:
    while True:
        pass


def spin_on(*_: object) -> None:
    spin()


def sleep() -> None:
    time.sleep(60)


def swallow() -> int:
    return len(bytearray(8 * 1024**3))


def crash() -> None:
    os.kill(os.getpid(), 11)


def fail() -> None:
    raise ValueError("no good")


def nest() -> None:
    nest()


def test_a_value_comes_back_and_noise_on_standard_output_does_not_matter() -> None:
    with SandboxedFunction(f"{HERE}:double") as run:
        assert [run.call(text).value for text in ("a", "é" * 100_000)] == ["aa", "é" * 200_000]


@pytest.mark.parametrize(
    ("function", "status"),
    [("spin", "timeout"), ("swallow", "memory"), ("crash", "crashed"), ("fail", "error"), ("nest", "error")],
)
def test_a_hostile_call_ends_with_its_status_and_a_reason(function: str, status: str) -> None:
    with SandboxedFunction(f"{HERE}:{function}", seconds=0.3, megabytes=2048) as run:
        outcome = run.call()
        assert (outcome.status, outcome.value) == (status, None)
        assert outcome.reason
        assert run.call().status == status


def test_a_call_that_only_waits_is_ended_by_the_wall_clock() -> None:
    began = time.monotonic()
    with SandboxedFunction(f"{HERE}:sleep", seconds=0.05) as run:
        assert run.call().status == "timeout"
    assert time.monotonic() - began < 20


def test_a_function_that_does_not_exist_cannot_start() -> None:
    with SandboxedFunction(f"{HERE}:absent") as run, pytest.raises(RuntimeError, match="could not start"):
        run.call()
