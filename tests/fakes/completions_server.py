"""A scripted OpenAI-compatible completions server whose prompt log-probabilities follow a formula, or are faulty.

Tokens are words with the blank before them. The log-probability of a token depends on itself and on all tokens before
it; prompts that hold the word ``POISON`` have one that is not finite. Faults are named; every request is logged.
"""

import json
import math
import re
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FAULTS = ("ignored", "zeros", "sentinel", "short", "gap", "unstable", "acausal", "constant", "positive", "infinite")
POISON = "poison"
BOS = 1


def words(text: str) -> list[str]:
    """The server's tokens: words with the blank before them."""
    return re.findall(r"\s*\S+|\s+$", text)


def word_id(word: str) -> int:
    return 2 + int(sha256(word.encode()).hexdigest()[:6], 16)


def logprob(ids: list[int]) -> float:
    """The log-probability of the last id after the others: between -8 and -0.1."""
    digest = sha256(",".join(map(str, ids)).encode()).hexdigest()
    return -0.1 - 7.9 * int(digest[:8], 16) / 0xFFFFFFFF


class CompletionsServer:
    """A context manager; ``base_url`` is the address before ``/completions``.

    Args:
        form: ``echo`` or ``vllm``, the form in which prompt log-probabilities are given.
        tokenizes: whether ``/tokenize`` exists.
        bos: whether the server puts a BOS before texts.
        fault: one of ``FAULTS``.
        failures: statuses with which the first requests are answered.
        poison: the last log-probability of prompts that hold ``POISON``.
    """

    def __init__(self, *, form="echo", tokenizes=True, bos=True, fault=None, failures=(), key=None, poison=-math.inf):
        self.poison = poison
        self.form, self.tokenizes, self.bos, self.fault, self.key = form, tokenizes, bos, fault, key
        self.failures = list(failures)
        self.requests: list[tuple[str, dict[str, Any]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append((self.path, body))
                status, reply = outer.reply(self.path, body, self.headers.get("authorization"))
                content = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                if status == 429:
                    self.send_header("retry-after", "0")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def reply(self, path, body, authorization):
        if self.key and authorization != f"Bearer {self.key}":
            return 401, {"error": {"message": f"bad key {authorization}"}}
        if self.failures:
            return self.failures.pop(0), {"error": {"message": "not now"}}
        if path == "/tokenize" and self.tokenizes:
            ids = [word_id(word) for word in words(body["prompt"])]
            return 200, {"tokens": [BOS, *ids] if self.bos and body["add_special_tokens"] else ids}
        if path == "/v1/completions":
            return 200, self._completion(body)
        return 404, {"error": {"message": f"no {path} here"}}

    def _completion(self, body):
        prompt = body["prompt"]
        tokens = words(prompt) if isinstance(prompt, str) else [str(i) for i in prompt]
        ids = [word_id(word) for word in tokens] if isinstance(prompt, str) else list(prompt)
        if isinstance(prompt, str) and self.bos:
            tokens, ids = ["<s>", *tokens], [BOS, *ids]
        values = [None, *(logprob(ids[: n + 1]) for n in range(1, len(ids)))]
        values = self._spoiled(values, ids)
        choice: dict[str, Any] = {"text": "", "index": 0}
        if self.form == "echo" and body.get("echo") and self.fault != "ignored":
            choice["logprobs"] = {"tokens": tokens, "token_logprobs": values}
        if self.form == "vllm" and "prompt_logprobs" in body and self.fault != "ignored":
            choice["prompt_logprobs"] = [
                None if value is None and place == 0 else {str(i): {"logprob": value, "decoded_token": token}}
                for place, (i, token, value) in enumerate(zip(ids, tokens, values, strict=False))
            ]
        return {"choices": [choice], "usage": {"prompt_tokens": len(ids)}}

    def _spoiled(self, values, ids):
        known = values[1:]
        spoiled = {
            "infinite": [*known[:-1], -math.inf],
            "zeros": [0.0] * len(known),
            "constant": [-2.5] * len(known),
            "sentinel": [*known[:-1], -9999.0],
            "short": known[:-1],
            "gap": [known[0], None, *known[2:]],
            "positive": [*known[:-1], 1.5],
            "unstable": [value - len(self.requests) for value in known],
            "acausal": [value - ids[-1] % 7 for value in known],
        }
        if word_id(f" {POISON}") in ids:
            known = [*known[:-1], self.poison]
        return [None, *spoiled.get(self.fault or "", known)]
