"""A scripted OpenAI-compatible chat server on loopback: it knows releases up to a planted cutoff, and fails to order.

It answers the probe's own wording, says YES to releases on or before the cutoff, NO or UNKNOWN to later ones and NO to
versions that it has never heard of. Faults are taken from a script, one a request, and every request is logged.
"""

import json
import re
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

QUESTION = re.compile(r"^(\d+)\. Had (.+) released version (\S+) yet\?$", re.MULTILINE)
FAULTS = (
    "429-seconds",
    "429-date",
    "429-quota",
    "500",
    "503",
    "401",
    "drop",
    "drop-half",
    "html",
    "sse",
    "empty",
    "no-choices",
    "low-usage",
)


@dataclass
class LoggedRequest:
    """One request: what was asked, what became of it, and the questions that were really answered."""

    path: str
    body: dict[str, Any]
    authorization: str | None
    fault: str | None = None
    status: int = 200
    answered: list[tuple[str, str]] = field(default_factory=list)
    at: float = 0.0


class FakeOpenAIServer:
    """A context manager; ``base_url`` is the address before ``/chat/completions``.

    Args:
        released: (project, version) to the day of release.
        cutoff: the planted cutoff.
        faults: one entry a request, None for none; after the last one the server behaves.
        refuses: parameters that it never takes: max_tokens, temperature, response_format, system, stream.
        key: the only key that it accepts; None accepts anyone.
        retry_after: seconds that its 429 asks for.
    """

    def __init__(
        self,
        released: Mapping[tuple[str, str], date],
        cutoff: date,
        *,
        faults: Iterable[str | None] = (),
        refuses: Iterable[str] = (),
        key: str | None = None,
        retry_after: int = 1,
    ) -> None:
        self.released, self.cutoff, self.refuses, self.key, self.retry_after = (
            released,
            cutoff,
            set(refuses),
            key,
            retry_after,
        )
        self.faults = deque(faults)
        unknown = {f for f in self.faults if f is not None} - set(FAULTS)
        if unknown:
            raise ValueError(f"unknown faults: {unknown}")
        self.log: list[LoggedRequest] = []
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> "FakeOpenAIServer":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def answered(self) -> list[tuple[str, str]]:
        """Every (project, version) that was answered in a reply that arrived, in order, repeats included."""
        return [question for request in self.log for question in request.answered]

    def next_fault(self) -> str | None:
        """The script's next entry."""
        with self._lock:
            return self.faults.popleft() if self.faults else None

    def answer(self, project: str, version: str) -> str:
        """What the planted model says about one version."""
        day = self.released.get((project, version))
        if day is None:
            return "NO"
        if day <= self.cutoff:
            return "YES"
        return "UNKNOWN" if (len(project) + len(version)) % 2 else "NO"


class _Handler(BaseHTTPRequestHandler):
    fake: FakeOpenAIServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        fault = self.fake.next_fault()
        logged = LoggedRequest(
            self.path, body, self.headers.get("authorization"), fault, at=datetime.now(UTC).timestamp()
        )
        self.fake.log.append(logged)
        if not self._refused(logged) and not self._failed(logged):
            self._complete(logged)

    def _refused(self, logged: LoggedRequest) -> bool:
        key = self.fake.key
        if (key and logged.authorization != f"Bearer {key}") or logged.fault == "401":
            said = f"Incorrect API key provided: {(logged.authorization or '').removeprefix('Bearer ')}."
            self._error(logged, 401, said, code="invalid_api_key")
            return True
        for name in sorted(self.fake.refuses & set(logged.body)):
            instead = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
            said = f"Unsupported parameter: '{name}' is not supported with this model.{instead}"
            self._error(logged, 400, said, code="unsupported_parameter", param=name)
            return True
        if "system" in self.fake.refuses and any(m["role"] == "system" for m in logged.body["messages"]):
            self._error(logged, 500, "System role not supported")
            return True
        return False

    def _failed(self, logged: LoggedRequest) -> bool:
        fault = logged.fault or ""
        if fault.startswith("429"):
            self._rate_limited(logged)
        elif fault in ("500", "503"):
            self._error(logged, int(fault), "The server had an error.")
        elif fault == "drop":
            logged.status = 0
            self._hang_up()
        elif fault == "html":
            self._send(logged, 200, "<html><body>Just a moment…</body></html>", "text/html; charset=utf-8")
        elif fault == "no-choices":
            self._send(logged, 200, json.dumps({"id": "x", "choices": []}))
        elif fault == "empty":
            self._send(logged, 200, json.dumps(self._document(None, "length", reasoning="Let me think. 1. YES or NO?")))
        else:
            return False
        return True

    def _rate_limited(self, logged: LoggedRequest) -> None:
        if logged.fault == "429-quota":
            said = "You exceeded your current quota, please check your plan and billing details."
            self._error(logged, 429, said, code="insufficient_quota")
            return
        later = datetime.now(UTC) + timedelta(seconds=self.fake.retry_after)
        wait = str(self.fake.retry_after) if logged.fault == "429-seconds" else format_datetime(later, usegmt=True)
        self._error(logged, 429, "Rate limit reached; see your account's billing page.", headers={"Retry-After": wait})

    def _complete(self, logged: LoggedRequest) -> None:
        prompt = "\n".join(m["content"] for m in logged.body["messages"])
        asked = [(int(n), project, version) for n, project, version in QUESTION.findall(prompt)]
        entries = [{"index": n, "answer": self.fake.answer(project, version)} for n, project, version in asked]
        content = json.dumps({"answers": entries})
        document = self._document(content, "stop", prompt_tokens=7 if logged.fault == "low-usage" else len(prompt) // 3)
        if logged.fault == "drop-half":
            logged.status = 0
            self._send(logged, 200, json.dumps(document), half=True)
            return
        logged.answered = [(project, version) for _, project, version in asked]
        if logged.fault == "sse":
            self._send(logged, 200, _stream(content), "text/event-stream")
        else:
            self._send(logged, 200, json.dumps(document))

    def _document(
        self, content: str | None, finish: str, reasoning: str | None = None, prompt_tokens: int = 500
    ) -> dict[str, Any]:
        message = {"role": "assistant", "content": content, "reasoning_content": reasoning}
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": len(content or "") // 4 + 1}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {"id": "x", "object": "chat.completion", "model": "planted-1", "choices": [choice], "usage": usage}

    def _error(
        self, logged: LoggedRequest, status: int, said: str, headers: Mapping[str, str] | None = None, **more: str
    ) -> None:
        body = json.dumps({"error": {"message": said, "type": "error", **more}})
        self._send(logged, status, body, headers=headers)

    def _send(
        self,
        logged: LoggedRequest,
        status: int,
        text: str,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        half: bool = False,
    ) -> None:
        logged.status = logged.status and status
        data = text.encode()
        self.send_response(status)
        for name, value in {"Content-Type": content_type, "Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if half else data)
        if half:
            self._hang_up()

    def _hang_up(self) -> None:
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Nothing on stderr: the log is kept in memory."""


def _stream(content: str) -> str:
    pieces: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    pieces += [{"content": content[i : i + 40]} for i in range(0, len(content), 40)]
    chunks: list[dict[str, Any]] = [{"model": "planted-1", "choices": [{"index": 0, "delta": p}]} for p in pieces]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks.append({"choices": [], "usage": {"prompt_tokens": 500, "completion_tokens": 90}})
    return "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"
