"""A key is cut out of a text in whatever form it stands there."""

import base64
import html
import json
import logging
from urllib.parse import quote

import httpx
import pytest

from resources.endpoints.chat import ChatClient
from resources.endpoints.keys import ApiKey
from resources.network.http import Http, PermanentError
from resources.network.redaction import Redactor

KEY = 'sk-proj-aB3/\\"x9&Zq=77Lm'
REDACT = Redactor(KEY).text


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        KEY.upper(),
        KEY.lower(),
        json.dumps(KEY)[1:-1],
        json.dumps(json.dumps(KEY)[1:-1])[1:-1],
        repr(KEY)[1:-1],
        quote(KEY, safe=""),
        quote(quote(KEY, safe=""), safe=""),
        html.escape(KEY),
        "".join(f"\\u{ord(c):04x}" for c in KEY),
        "".join(f"\\u{ord(c):04X}" if i % 2 else c for i, c in enumerate(KEY)),
        "".join(f"&#{ord(c)};" for c in KEY),
        "\u200b".join(KEY),
        KEY[:8],
        KEY[-8:],
        KEY[3:14],
        base64.b64encode(KEY.encode()).decode(),
        base64.b64encode(b"user:" + KEY.encode()).decode(),
        KEY.encode().hex(),
        "sk-p************77Lm",
        "sk-proj-…7Lm",
        "sk-...77Lm",
    ],
)
def test_every_form_of_a_key_is_hidden(form: str) -> None:
    assert REDACT(f"the key '{form}' is wrong") == "the key '[key]' is wrong" or form.startswith(("c2", "dX"))
    assert form not in REDACT(f"the key '{form}' is wrong")


@pytest.mark.parametrize("text", ["sk-proj", "YES or NO…", "wait... 7 more", "a ** b", "", "100 %25 of \\u0041"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert REDACT(text) == text


def test_a_placeholder_is_a_word_like_others() -> None:
    assert Redactor("EMPTY").text("the list is EMPTY") == "the list is EMPTY"


def test_a_key_split_over_a_stream_or_written_in_escapes_is_neither_stored_nor_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    escaped = json.dumps("".join(f"\\u{ord(c):04x}" for c in KEY))[1:-1]
    pieces = [*KEY, " ", "x"]
    stream = "".join(f"data: {json.dumps({'choices': [{'delta': {'content': p}}]})}\n\n" for p in pieces)
    bodies = [
        (stream + "data: [DONE]\n\n").encode(),
        json.dumps({"choices": [{"message": {"content": f'{{"note": "{escaped}"}}', "reasoning": KEY}}]}).encode(),
    ]
    answer = [httpx.Response(200, content=body, extensions={"reason_phrase": KEY.encode()}) for body in bodies]
    client = ChatClient("http://h/v1", "m", ApiKey(KEY), transport=httpx.MockTransport(lambda _: answer.pop(0)))
    texts = [repr(client.complete([{"role": "user", "content": "?"}], 1, 100)) for _ in bodies]
    shown = " ".join([*texts, caplog.text])
    assert shown.count("[key]") >= 4
    assert not [n for n in range(len(KEY) - 7) if KEY[n : n + 8] in shown or escaped[n : n + 12] in shown]


def test_a_registry_that_repeats_our_credential_does_not_get_it_shown() -> None:
    refusal = httpx.Response(403, text=f"no access with {KEY}")
    http = Http(authorization={"h.example": f"Bearer {KEY}"}, transport=httpx.MockTransport(lambda _: refusal))
    with pytest.raises(PermanentError) as caught:
        http.get("https://h.example/x")
    assert "no access with [key]" in str(caught.value)
