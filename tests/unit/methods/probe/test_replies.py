"""Reading replies: every shape that models send, and nothing guessed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.probe.replies import ParsedReply, read_label, read_reply
from strandline.probe.thoughts import open_thought, without_reasoning

GOOD = '{"answers": [{"index": 1, "answer": "YES"}, {"index": 2, "answer": "NO"}, {"index": 3, "answer": "UNKNOWN"}]}'
WHOLE = ["YES", "NO", "UNKNOWN"]
YAML = """```yaml
answers:
  - index: 1
    answer: YES
  - index: 2
    answer: NO
  - answer: 'UNKNOWN'
    index: 3
```"""
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
        pytest.param(GOOD.replace('"YES"', '"YES", "why": "the set {a, b] and a \\" quote"'), id="braces in strings"),
        pytest.param(GOOD.replace('"YES"', '{"value": "YES", "p": 0.9}'), id="objects in entries"),
        pytest.param(GOOD.replace('"NO"', '"NO", "meta": {"source": {"n": 7}}'), id="objects beside the answer"),
        pytest.param(json.dumps(GOOD), id="JSON in a string"),
        pytest.param(json.dumps({"answers": json.dumps(json.loads(GOOD)["answers"])}), id="JSON in JSON"),
        pytest.param('{"thinking": "{\'index\': 1, \'answer\': \'NO\'}",' + GOOD[1:], id="draft in JSON"),
        pytest.param(GOOD.replace("index", "INDEX").replace("answer", "ANSWER"), id="keys in capitals"),
        pytest.param(GOOD.replace(": 1,", ": 1.0,").replace(": 2,", ": 2.0,"), id="numbers with a point"),
        pytest.param(GOOD.replace(": 1,", ': "Q1",').replace(": 2,", ': "[2]",'), id="numbers as text"),
        pytest.param('{"Q1": "YES", "question 2": {"answer": "NO"}, "3": ["UNKNOWN"]}', id="map of named numbers"),
        pytest.param('[[1, "YES"], [2, "NO"], [3, "UNKNOWN"]]', id="pairs"),
        pytest.param('[{"answer": "YES"}, {"answer": "NO"}, {"answer": "UNKNOWN"}]', id="entries in order"),
        pytest.param("[{index: 1, answer: YES}, {index: 2, answer: NO}, {index: 3, answer: UNKNOWN}]", id="bare words"),
        pytest.param(GOOD.replace('"YES"', "'YES'"), id="one entry in single quotes"),
        pytest.param("| # | answer |\n|---|---|\n| 1 | YES |\n| 2 | NO |\n| 3 | UNKNOWN |", id="table"),
        pytest.param("[1] YES\n[2] NO\n[3] UNKNOWN", id="numbers in brackets"),
        pytest.param("1,YES\n2,NO\n3,UNKNOWN", id="comma-separated"),
        pytest.param("1\tYES\n2\tNO\n3\tUNKNOWN", id="tab-separated"),
        pytest.param(YAML, id="YAML"),
        pytest.param("answers:\n  1: YES\n  2: 'NO'\n  3: UNKNOWN", id="YAML map"),
        pytest.param("- YES\n- NO\n- UNKNOWN", id="bullets"),
        pytest.param(f"<|START_THINKING|>1. NO<|END_THINKING|><|START_RESPONSE|>{GOOD}<|END_RESPONSE|>", id="Cohere"),
        pytest.param(f"◁think▷1. NO◁/think▷{GOOD}", id="Kimi"),
        pytest.param(f"<seed:think>{ECHO}</seed:think>{GOOD}", id="Seed"),
        pytest.param(f"<|inner_prefix|>1. NO<|inner_suffix|>{GOOD}", id="Apertus"),
        pytest.param(f"<think>a <think> tag, 1. NO</think>{GOOD}", id="a mark named in thoughts"),
        pytest.param(f"<reasoning>1. NO <think>x</think> 1. UNKNOWN</reasoning>{GOOD}", id="thoughts in thoughts"),
        pytest.param(f"<answer>{GOOD}</answer>", id="an answer's own mark"),
        pytest.param(f"<|im_start|>assistant\n{GOOD}<|im_end|>", id="marks of a turn"),
        pytest.param(f"<reply_42>{GOOD}</reply_42>", id="a closed mark of no known name"),
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
        (f"<|START_THINKING|>{GOOD}", "length", None, "truncated"),
        (f"<|START_PONDERING|>{GOOD}", "length", None, "truncated"),
        (f"◁think▷{GOOD}", "length", None, "truncated"),
        (f"[REASONING]\n{GOOD}", "length", None, "truncated"),
        (f"<wibble>{GOOD}", "length", None, "truncated"),
        (f"<thinking>{GOOD}", "stop", None, "empty"),
        (f"<|channel|>analysis<|message|>{GOOD}", "length", None, "truncated"),
        (f"Okay, the first one I remember.\n{GOOD}", "length", None, "truncated"),
        ('{"thinking": "I would say {\\"index\\": 1, \\"answer\\": \\"NO\\"} or', "length", None, "truncated"),
        ("{\"notes\": \"{'index': 1, 'answer': 'NO'}, so", "length", None, "truncated"),
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


def test_a_thought_that_is_still_open_at_the_end_of_a_prompt_is_found() -> None:
    assert open_thought("<|im_start|>assistant\n<think>\n") is not None
    assert open_thought("<|im_start|>assistant\n<think>\n\n</think>\n\n") is None
    assert open_thought("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>") is None


def test_lists_beside_the_answers_are_no_answers() -> None:
    beside = GOOD[:-1] + ', "sources": ["a", "b", "c"], "p": {"1": 0.9, "2": 0.8}}'
    assert labels(read_reply(beside, 3)) == WHOLE


def test_a_round_without_questions_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one question"):
        read_reply(GOOD, 0)
