"""A scripted web server on loopback and a clock that only sleeping moves.

`WebServer` answers each request with a handler `(Asked) -> Answer` and remembers what it was asked. Answers may stall
before the status line, stall in the body, or drop the connection.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    """A request as it came over the wire; `raw_path` is still percent-encoded, `headers` compare
    without regard to case."""

    raw_path: str
    query: dict[str, str]
    headers: Message


@dataclass(frozen=True)
class Answer:
    """What to send back. `stall` seconds pass before the status line; `drop` closes the connection without a word."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    stall: float = 0.0
    drop: bool = False
    cut_at: int | None = None


def json_answer(value: Any, status: int = 200, zipped: bool = False, **headers: str) -> Answer:
    """An answer with a JSON body; underscores in header names become hyphens."""
    body = json.dumps(value).encode()
    named = {"Content-Type": "application/json", **{key.replace("_", "-"): text for key, text in headers.items()}}
    if zipped:
        return Answer(status, gzip.compress(body), {**named, "Content-Encoding": "gzip"})
    return Answer(status, body, named)


class WebServer:
    """`with WebServer(handler) as web: web.url` ; `web.asked` lists the requests in order of arrival."""

    def __init__(self, handler: Callable[[Asked], Answer]) -> None:
        self.asked: list[Asked] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                asked = Asked(parts.path, dict(parse_qsl(parts.query)), self.headers)
                owner.asked.append(asked)
                self.send(handler(asked))

            def send(self, answer: Answer) -> None:
                time.sleep(answer.stall)
                if answer.drop:
                    self.close_connection = True
                    self.connection.close()
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body[: answer.cut_at])
                if answer.cut_at is not None:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> WebServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def in_turn(*answers: Answer) -> Callable[[Asked], Answer]:
    """A handler that gives these answers one after the other; asking once more is an error that the client sees."""
    waiting = list(answers)
    return lambda _: waiting.pop(0) if waiting else Answer(599, b"the script ran out")


class FakeTime:
    """A clock that stands still until someone sleeps. `naps` are the pauses taken."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now
        self.naps: list[float] = []

    def clock(self) -> float:
        """Seconds since the epoch."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let the time pass at once."""
        self.naps.append(seconds)
        self.now += seconds
