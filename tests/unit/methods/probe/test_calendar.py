"""The calendar, and how its questions are put."""

import re
from datetime import date

import pytest

from strandline.probe import Question
from strandline.probe.calendar import build_calendar, synthetic_calendar
from strandline.probe.committed_calendar import committed_calendar
from strandline.probe.questions import (
    answer_schema,
    chat_messages,
    likelihood_messages,
    likelihood_text,
    question_text,
)
from strandline.releases.versions import natural


def row(day: str, project: str, version: str = "1.0", rank: int | None = 1, decoy: str | None = "1.9") -> dict:
    return {
        "dataset_version": "v",
        "released_on": date.fromisoformat(day),
        "project": project,
        "version": version,
        "decoy_version": decoy,
        "salience_rank": rank,
    }


def full_day(day: str, n: int = 5) -> list[dict]:
    return [row(day, f"p{i}", rank=i + 1) for i in range(n)]


def test_days_with_too_few_releases_are_not_eligible_and_the_rest_are_in_order() -> None:
    rows = [*full_day("2024-03-05"), *full_day("2024-01-02"), *full_day("2024-02-01", 4)]
    calendar = build_calendar(rows)
    assert calendar.days == (date(2024, 1, 2), date(2024, 3, 5))
    assert calendar.index[date(2024, 3, 5)] == 1
    assert calendar.dataset_version == "v"


def test_the_order_of_rows_does_not_matter() -> None:
    rows = [*full_day("2024-03-05"), *full_day("2024-01-02"), row("2024-01-02", "p1", decoy="2.2")]
    assert build_calendar(rows) == build_calendar(rows[::-1])


def test_widely_known_projects_come_first_and_unranked_ones_last() -> None:
    rows = [*full_day("2024-01-02"), row("2024-01-02", "aaa", rank=None), *full_day("2024-01-09")]
    assert [i.project for i in build_calendar(rows).items[0]] == ["p0", "p1", "p2", "p3", "p4", "aaa"]


def test_versions_sort_by_their_numbers() -> None:
    assert sorted(["4.10", "4.9", "4.9-rc", "5"], key=natural) == ["4.9", "4.9-rc", "4.10", "5"]


def test_broken_rows_are_named() -> None:
    with pytest.raises(ValueError, match="lacks project"):
        build_calendar([row("2024-01-02", "")])
    with pytest.raises(ValueError, match="two days"):
        build_calendar(full_day("2024-01-02"))
    with pytest.raises(ValueError, match="several dataset versions"):
        build_calendar([*full_day("2024-01-02"), row("2024-01-09", "x") | {"dataset_version": "w"}])


def test_the_committed_calendar_has_hundreds_of_days_over_ten_years() -> None:
    calendar = committed_calendar()
    assert calendar.n_days >= 700
    assert (calendar.days[-1] - calendar.days[0]).days > 3650
    assert all(len(items) >= 5 for items in calendar.items)
    assert sum(i.decoy_version is None for items in calendar.items for i in items) < 0.05 * 5 * calendar.n_days


def test_positions_agree_with_the_index_of_the_day() -> None:
    calendar = synthetic_calendar(40)
    question = calendar.items[7][2].question(7, "decoy")
    assert question.released_on == calendar.days[question.position]
    assert question.version == calendar.items[7][2].decoy_version


QUESTION = Question(3, date(2024, 12, 5), "React", "19.0.0", "real")


def test_the_question_reads_as_specified() -> None:
    assert question_text(QUESTION) == "Had React released version 19.0.0 yet?"
    assert "Reply YES, NO, or UNKNOWN." in chat_messages([QUESTION])[1]["content"]


def test_no_prompt_contains_a_date_or_says_which_is_real() -> None:
    decoy = Question(3, date(2024, 12, 5), "React", "19.0.49", "decoy")
    texts = [m["content"] for m in chat_messages([QUESTION, decoy])] + [likelihood_text(QUESTION)]
    texts += [m["content"] for m in likelihood_messages(QUESTION)]
    for text in texts:
        assert not re.search(r"\b20\d\d\b|December|decoy", text)


def test_the_system_prompt_asks_for_memory_without_tools_or_patterns() -> None:
    system = chat_messages([QUESTION])[0]
    assert system["role"] == "system"
    for needed in ("from memory", "browse", "tools", "version numbers usually"):
        assert needed in system["content"]


def test_questions_are_numbered_from_one_and_the_format_is_json() -> None:
    user = chat_messages([QUESTION] * 3)[1]["content"]
    assert [line[:2] for line in user.splitlines()[:3]] == ["1.", "2.", "3."]
    assert '{"answers":' in user


def test_an_empty_round_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        chat_messages([])


def test_likelihood_prompts_share_everything_before_the_question() -> None:
    other = Question(3, date(2024, 12, 5), "NumPy", "2.2.0", "real")
    a, b = likelihood_text(QUESTION), likelihood_text(other)
    shared = a[: a.index("Had React")]
    assert b.startswith(shared)
    assert len(shared) > 0.8 * len(a)


def test_the_schema_fits_the_format_and_the_stored_questions_rebuild_the_round() -> None:
    schema = answer_schema(24)
    assert schema["properties"]["answers"]["items"]["properties"]["index"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 24,
    }
