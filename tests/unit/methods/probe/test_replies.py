"""Reading replies: every shape that models send, and nothing guessed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.probe.replies import ParsedReply, read_label, read_reply, without_reasoning

GOOD = '{"answers": [{"index": 1, "answer": "YES"}, {"index": 2, "answer": "NO"}, {"index": 3, "answer": "UNKNOWN"}]}'
WHOLE = ["YES", "NO", "UNKNOWN"]
ECHO = '{"answers": [{"index": 1, "answer": "YES"}, …]}'


def labels(parsed: ParsedReply) -> list[str | None]:
    """The answers' words, None where missing."""
    return [a.answer for a in parsed.answers]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(GOOD, id="plain JSON"),
        pytest.param(f"```json\n{GOOD}\n```", id="fenced"),
        pytest.param(f"Sure! Here you are:\n```\n{GOOD}\n```\nAnything else?", id="fenced in prose"),
        pytest.param(f"<think>1 is NO, surely.\n1. NO</think>\n{GOOD}", id="after a think block"),
        pytest.param(f"1. NO\n2. NO so far\n</think>{GOOD}", id="after a think block that the template opened"),
        pytest.param(f"[THINK]{ECHO}[/THINK]{GOOD}", id="after a bracketed think block"),
        pytest.param(f"<|channel|>analysis<|message|>1. NO<|channel|>final<|message|>{GOOD}", id="after a channel"),
        pytest.param(f"I use the format {ECHO} as asked.\n{GOOD}", id="format echoed first"),
        pytest.param(GOOD.replace('"', "“"), id="curly quotes"),
        pytest.param(GOOD.replace("}]", "},]").replace("]}", "],}"), id="trailing commas"),
        pytest.param(GOOD.replace('"', "'"), id="single quotes"),
        pytest.param(GOOD.replace('"answers"', "answers").replace('"index"', "index"), id="bare keys"),
        pytest.param("{" + GOOD + "}}", id="stray braces"),
        pytest.param(json.dumps(json.loads(GOOD)["answers"]), id="bare list"),
        pytest.param("\n".join(json.dumps(e) for e in json.loads(GOOD)["answers"]), id="one object a line"),
        pytest.param('{"1": "YES", "2": "NO", "3": "UNKNOWN"}', id="map"),
        pytest.param('{"answers": {"1": "YES", "2": "NO", "3": "UNKNOWN"}}', id="map inside"),
        pytest.param('{"answers": ["YES", "NO", "UNKNOWN"]}', id="list of words"),
        pytest.param('["yes", "No", "unknown."]', id="bare list of words"),
        pytest.param(GOOD.replace("1,", '"1",').replace('"YES"', '"yes"'), id="text indices, lower case"),
        pytest.param(GOOD.replace('"index"', '"question"'), id="another name for the index"),
        pytest.param(GOOD.replace('"YES"', '"YES", "confidence": 0.9'), id="more fields"),
        pytest.param(GOOD.replace("1,", "0,").replace("2,", "1,").replace("3,", "2,"), id="counted from 0"),
        pytest.param(GOOD[:-2] + ', {"index": 4, "answer": "YES"}, {"index": -1, "answer": "NO"}]}', id="out of range"),
        pytest.param(GOOD.replace("]}", ', {"index": 2, "answer": "NO"}]}'), id="repeated alike"),
        pytest.param("1. YES\n2. NO\n3. UNKNOWN", id="lines"),
        pytest.param("**1.** YES\n- 2) **No**\nQ3: unknown.", id="marked lines"),
        pytest.param("1. Had A released version 1.0 yet? YES\n2. B 2? - NO\n3: C: UNKNOWN", id="questions repeated"),
    ],
)  # fmt: skip
def test_every_shape_of_a_whole_reply_is_read(text: str) -> None:
    parsed = read_reply(text, 3)
    assert labels(parsed) == WHOLE
    assert (parsed.status, parsed.reason) == ("ok", None)


@pytest.mark.parametrize(
    ("text", "finish", "expected", "statuses"),
    [
        pytest.param(GOOD[:75], "length", ["YES", "NO", None], ["ok", "ok", "truncated"], id="cut after two entries"),
        pytest.param(
            GOOD[:64], "length", ["YES", None, None], ["ok", "truncated", "truncated"], id="cut inside an entry"
        ),
        pytest.param(
            "```json\n" + GOOD[:50], "stop", ["YES", None, None], ["ok", "missing", "missing"], id="cut in a fence"
        ),
        pytest.param(
            GOOD.replace("]}", ', {"index": 2, "answer": "YES"}]}'),
            "stop",
            ["YES", None, "UNKNOWN"],
            ["ok", "conflicting", "ok"],
            id="contradicts itself",
        ),
        pytest.param(
            GOOD.replace('"NO"', '"probably not"'),
            "stop",
            ["YES", None, "UNKNOWN"],
            ["ok", "unparsed", "ok"],
            id="other word",
        ),
        pytest.param(
            GOOD.replace('"NO"', "null"), "stop", ["YES", None, "UNKNOWN"], ["ok", "unparsed", "ok"], id="null"
        ),
        pytest.param(
            GOOD.replace('"NO"', "false"), "stop", ["YES", None, "UNKNOWN"], ["ok", "unparsed", "ok"], id="boolean"
        ),
        pytest.param(
            GOOD.replace("2,", "9,"), "stop", ["YES", None, "UNKNOWN"], ["ok", "missing", "ok"], id="wrong index"
        ),
        pytest.param(
            "1. YES\n2. I have no\n3. YES or NO", "stop", ["YES", None, None], ["ok", "missing", "missing"], id="lines"
        ),
        pytest.param(
            '{"answers": [{"index": 1, "index": 2, "answer": "YES"}, {"index": 3, "answer": "NO"}]}',
            "stop",
            [None, None, "NO"],
            ["missing", "missing", "ok"],
            id="key twice",
        ),
    ],
)
def test_what_is_whole_is_kept_and_the_rest_is_missing_with_its_reason(
    text: str, finish: str, expected: list[str | None], statuses: list[str]
) -> None:
    parsed = read_reply(text, 3, finish)
    assert labels(parsed) == expected
    assert [a.parse_status for a in parsed.answers] == statuses
    assert parsed.status == "partial"


@pytest.mark.parametrize(
    ("text", "finish", "refusal", "status"),
    [
        (None, "stop", None, "empty"),
        ("", "stop", None, "empty"),
        ("  \n", None, None, "empty"),
        ("<think>1. YES 2. NO</think>", "stop", None, "empty"),
        (None, "length", None, "truncated"),
        (f"<think>Let me see. {GOOD}", "length", None, "truncated"),
        ('{"answers": [{"index": 1, "ans', "length", None, "truncated"),
        ("I'm sorry, but I can't help with that.", "stop", None, "refused"),
        ("I’m sorry, I cannot answer.", "stop", None, "refused"),
        (None, "stop", "I decline.", "refused"),
        (None, "content_filter", None, "refused"),
        ("It depends on the project.", "stop", None, "unparsed"),
        ("UNKNOWN", "stop", None, "unparsed"),
        ("YES NO UNKNOWN", "stop", None, "unparsed"),
        ('["YES", "NO"]', "stop", None, "unparsed"),
        ('{"answers": []}', "stop", None, "unparsed"),
        (ECHO, "stop", None, "unparsed"),
        ('[{"index": 0, "answer": "YES"}, {"index": 2, "answer": "NO"}]', "stop", None, "unparsed"),
        ("{" * 2000, "stop", None, "unparsed"),
        ("[" * 5000, "stop", None, "unparsed"),
    ],
)
def test_an_unusable_reply_is_missing_for_every_question_and_never_unknown(
    text: str | None, finish: str | None, refusal: str | None, status: str
) -> None:
    parsed = read_reply(text, 3, finish, refusal)
    assert labels(parsed) == [None, None, None]
    assert parsed.status == status
    assert {a.parse_status for a in parsed.answers} == {status}
    assert parsed.reason


@pytest.mark.parametrize("text", ["YES", "**No**.", '"UNKNOWN"'])
def test_a_single_question_may_be_answered_by_one_word(text: str) -> None:
    assert labels(read_reply(text, 1)) == [read_label(text)]


def test_a_single_entry_may_count_from_0_or_1() -> None:
    assert labels(read_reply('{"index": 0, "answer": "NO"}', 1)) == ["NO"]
    assert labels(read_reply('{"index": 1, "answer": "NO"}', 1)) == ["NO"]


@given(st.lists(st.sampled_from(["YES", "NO", "UNKNOWN"]), min_size=1, max_size=24), st.data())
def test_cutting_a_reply_anywhere_never_changes_an_answer(answers: list[str], data: st.DataObject) -> None:
    text = json.dumps({"answers": [{"index": i, "answer": a} for i, a in enumerate(answers, 1)]})
    cut = data.draw(st.integers(0, len(text)))
    parsed = read_reply(text[:cut], len(answers), "length")
    assert all(a.answer in (None, answers[a.index]) for a in parsed.answers)
    assert labels(read_reply(text, len(answers))) == answers


@given(st.text(max_size=300) | st.text(alphabet='{}[]",:0123YESNOindexanswer <>/\n', max_size=300), st.integers(1, 5))
def test_any_text_gives_one_answer_a_question_in_order(text: str, n_questions: int) -> None:
    parsed = read_reply(text, n_questions)
    assert [a.index for a in parsed.answers] == list(range(n_questions))
    assert all((a.answer is None) != (a.parse_status == "ok") for a in parsed.answers)
    assert (parsed.status == "ok") == (parsed.n_answered == n_questions)


def test_a_long_reply_is_read_in_no_time() -> None:
    text = "1. " + "a-" * 50_000 + "\n" + '{"index": 1' * 20_000
    assert read_reply(text, 3).status == "unparsed"


def test_only_the_part_after_the_last_reasoning_is_visible() -> None:
    assert without_reasoning("<think>a</think>b<think>c</think>d") == "b d"
    assert without_reasoning("a</think>b") == "b"
    assert without_reasoning("a<think>b") == "a"


def test_a_round_without_questions_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one question"):
        read_reply(GOOD, 0)
