"""Reports, rows and pictures: the ten fields, the statuses, the limits; both estimators on one run's answers."""

from datetime import date

import pytest

from strandline.probe import Answer, Question, RoundReply, StoredRound
from strandline.probe.boundaries import Boundary, Rates, agreement, date_run, rates
from strandline.probe.calendar import Calendar, synthetic_calendar
from strandline.probe.calibrated_policy import CalibratedPolicy
from strandline.probe.figures import probe_figure
from strandline.probe.modelclock import ModelclockPolicy
from strandline.probe.report import LIMITS, Header, fields_text, report, transcript
from strandline.probe.runs import Settings, policy_for, run_id
from strandline.probe.session import run_session

HEADER = Header("tiny/model", "a house", "0.1.0+abc", "2024-05-01-0123", "calibrated")


@pytest.fixture(scope="module")
def calendar() -> Calendar:
    return synthetic_calendar(250, seed=2)


def run(policy, answer) -> list[StoredRound]:
    def ask(questions: list[Question]) -> RoundReply:
        return RoundReply(tuple(Answer(i, answer(q)) for i, q in enumerate(questions)))

    return list(run_session(policy, ask, lambda r: None).rounds)


@pytest.fixture(scope="module")
def sharp(calendar: Calendar) -> list[StoredRound]:
    cutoff = calendar.days[130]
    return run(CalibratedPolicy(calendar), lambda q: "YES" if q.kind == "real" and q.released_on < cutoff else "NO")


@pytest.mark.parametrize("estimator", ["calibrated", "modelclock"])
def test_either_estimator_dates_the_answers_of_the_default_policy(
    calendar: Calendar, sharp: list[StoredRound], estimator: str
) -> None:
    boundary, mass = date_run(estimator, calendar, sharp)
    assert boundary.status == "ok"
    assert boundary.low95 <= calendar.days[130] <= boundary.high95
    total = sum(m.probability for m in mass)
    expected = boundary.details["evidence"]["in"] if estimator == "calibrated" else 1
    assert total == pytest.approx(expected, abs=1e-9)


def test_the_default_estimator_dates_the_answers_of_the_seed_policy_counting_repeats_once(calendar: Calendar) -> None:
    cutoff = calendar.days[130]
    rounds = run(ModelclockPolicy(calendar), lambda q: "YES" if q.kind == "real" and q.released_on < cutoff else "NO")
    boundary, _ = date_run("calibrated", calendar, rounds)
    assert boundary.status == "ok"
    assert boundary.details["counted"]["real"] < boundary.rates.real_total
    assert any("repeats not counted" in line for line in transcript(rounds, "calibrated"))
    assert not any("repeats" in line for line in transcript(rounds, "modelclock"))
    same, repeated = agreement(rounds)
    assert same == repeated > 0


def test_the_report_has_the_ten_fields_in_the_stated_form(calendar: Calendar, sharp: list[StoredRound]) -> None:
    boundary, _ = date_run("calibrated", calendar, sharp)
    text = report(HEADER, [boundary], sharp)
    lines = text.splitlines()
    assert f"Estimated cutoff      {boundary.estimate_from} to {boundary.estimate_to}" in lines
    assert f"80% credible range    {boundary.low80} to {boundary.high80}" in lines
    assert f"95% credible range    {boundary.low95} to {boundary.high95}" in lines
    assert f"Decoy false positives 0/{boundary.rates.decoy_total}" in lines
    for field in ("Model ", "Provider", "Strandline", "Replicates", "Dataset", "Rounds\n"):
        assert field in text
    assert "tiny/model" in text
    assert "2024-05-01-0123" in text
    assert "0.1.0+abc" in text
    assert "Replicate stability" in text
    assert "Last traces (soft)" in text


def test_the_transcript_has_a_line_a_round_with_each_days_status(calendar: Calendar, sharp: list[StoredRound]) -> None:
    lines = transcript(sharp, "calibrated")
    assert len(lines) == len(sharp)
    assert lines[0].strip().startswith("1.1 ")
    assert any("known 5/5, decoys 0/3" in line for line in lines)
    assert any("unknown 0/5, decoys 0/3" in line for line in lines)


def test_every_limit_is_stated_in_every_report(calendar: Calendar, sharp: list[StoredRound]) -> None:
    boundary, _ = date_run("modelclock", calendar, sharp)
    for text in (report(HEADER, [boundary], sharp), report(HEADER, [boundary], sharp, with_rounds=False)):
        assert all(limit in text for limit in LIMITS)


def test_a_model_without_a_boundary_gets_rates_but_no_date(calendar: Calendar) -> None:
    rounds = run(CalibratedPolicy(calendar), lambda q: "YES")
    boundary, _ = date_run("calibrated", calendar, rounds)
    text = fields_text(HEADER, boundary)
    assert "Estimated cutoff      none (no boundary)" in text
    assert "95% credible range    none" in text
    assert boundary.estimate_from is boundary.low95 is None
    n = boundary.rates.real_total
    assert f"YES to releases       {n}/{n} (100%)" in report(HEADER, [boundary], rounds)


def test_a_censored_seed_result_is_in_words_and_not_the_last_date(calendar: Calendar) -> None:
    rounds = run(CalibratedPolicy(calendar), lambda q: "YES")
    boundary, _ = date_run("modelclock", calendar, rounds)
    assert boundary.status == "right_censored"
    assert boundary.estimate_from is boundary.estimate_to is None
    assert boundary.label == f"{calendar.days[-1]} or later"
    text = report(HEADER, [date_run("calibrated", calendar, rounds)[0], boundary], rounds)
    assert "after the calendar" in text


def test_disagreeing_estimators_are_pointed_out(calendar: Calendar, sharp: list[StoredRound]) -> None:
    found, _ = date_run("modelclock", calendar, sharp)
    none = Boundary("calibrated", "drift", "falls", "none", *[None] * 6, Rates(1, 2, 0, 1), 1, 1, 3)
    assert "estimators disagree" in report(HEADER, [none, found], sharp)
    assert "estimators disagree" not in report(HEADER, [found, found], sharp)


@pytest.mark.parametrize("estimator", ["calibrated", "modelclock"])
def test_no_answers_make_no_date(calendar: Calendar, estimator: str) -> None:
    for rounds in ([], run(CalibratedPolicy(calendar), lambda q: None)):
        boundary, _ = date_run(estimator, calendar, rounds)
        assert boundary.status == "unanswered"
        assert boundary.estimate_from is boundary.low80 is boundary.high95 is None
        assert "none" in fields_text(HEADER, boundary)
        report(HEADER, [boundary], rounds)


def test_failed_exchanges_are_passed_over(calendar: Calendar, sharp: list[StoredRound]) -> None:
    missing = tuple(Answer(i, None, parse_status="error") for i in range(len(sharp[0].questions)))
    failed = StoredRound(0, len(sharp), sharp[0].questions, RoundReply(missing, status="error"))
    assert date_run("calibrated", calendar, [*sharp, failed]) == date_run("calibrated", calendar, sharp)


def test_rates_count_usable_answers_only() -> None:
    questions = tuple(Question(0, date(2024, 1, 2), "p", str(i), "decoy" if i == 3 else "real") for i in range(4))
    answers = (Answer(0, "YES"), Answer(1, "UNKNOWN"), Answer(2, None), Answer(3, "YES"))
    assert rates([StoredRound(0, 0, questions, RoundReply(answers))]) == Rates(1, 2, 1, 1)


def test_mean_probabilities_are_shown_where_they_were_read(calendar: Calendar, sharp: list[StoredRound]) -> None:
    questions = sharp[0].questions
    answers = tuple(Answer(i, "NO", 0.25 if q.kind == "real" else 0.125) for i, q in enumerate(questions))
    read = [StoredRound(0, 0, questions, RoundReply(answers))]
    boundary, _ = date_run("calibrated", calendar, read)
    assert "Mean P(YES)           real 0.250, decoy 0.125" in report(HEADER, [boundary], read)
    assert "Mean P(YES)" not in report(HEADER, [boundary], sharp)


def test_a_run_is_known_by_what_it_would_ask_of_whom() -> None:
    asked = {"source": "hub:a/b", "revision": "1"}
    same = run_id(Settings(), "2024-05-01-0123", asked)
    assert same == run_id(Settings(), "2024-05-01-0123", dict(reversed(asked.items())))
    assert same.startswith("calibrated-")
    others = {
        run_id(Settings(seed=1), "2024-05-01-0123", asked),
        run_id(Settings("modelclock"), "2024-05-01-0123", asked),
        run_id(Settings(), "2024-05-02-9999", asked),
        run_id(Settings(), "2024-05-01-0123", asked | {"revision": "2"}),
    }
    assert len(others | {same}) == 5
    with pytest.raises(ValueError, match="no policy is called"):
        Settings("guess")


def test_the_reference_variant_is_a_policy_and_an_estimator_by_name(calendar: Calendar) -> None:
    def overclaims(q: Question) -> str:
        known = int(q.project[-1]) % 3 > 0 if q.kind == "real" else q.position % 2 == 0
        return "YES" if known and q.released_on < calendar.days[130] else "NO"

    rounds = run(policy_for(Settings("modelclock_reference"), calendar), overclaims)
    by_name = {e: date_run(e, calendar, rounds)[1] for e in ("modelclock", "modelclock_reference")}
    assert by_name["modelclock"] != by_name["modelclock_reference"]


def test_a_round_about_another_calendar_is_refused(calendar: Calendar, sharp: list[StoredRound]) -> None:
    with pytest.raises(ValueError, match="another day"):
        date_run("calibrated", synthetic_calendar(250, seed=3), sharp)
    with pytest.raises(ValueError, match="no estimator"):
        date_run("guess", calendar, sharp)


def test_the_picture_shows_every_estimator_and_the_answers(calendar: Calendar, sharp: list[StoredRound]) -> None:
    dated = [date_run(e, calendar, sharp) for e in ("calibrated", "modelclock")]
    figure = probe_figure("tiny/model", [b for b, _ in dated], [m for _, m in dated], sharp)
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert [t.split(":")[0] for t in titles] == ["calibrated", "modelclock", "answers"]
    n_points = sum(len(c.get_offsets()) for c in figure.axes[-1].collections)
    assert n_points == sum(a.answer is not None for r in sharp for a in r.reply.answers)


def test_a_picture_without_a_boundary_says_so_where_the_curve_would_be(calendar: Calendar) -> None:
    rounds = run(CalibratedPolicy(calendar), lambda q: "YES")
    dated = [date_run(e, calendar, rounds) for e in ("calibrated", "modelclock")]
    figure = probe_figure("tiny/model", [b for b, _ in dated], [m for _, m in dated], rounds)
    assert [axis.texts[0].get_text() for axis in figure.axes[:2]] == [
        "no date inside the calendar stands out",
        "its probability lies after the calendar",
    ]
    assert figure.axes[0].get_title(loc="left") == "calibrated: none (no boundary)"
    assert all(list(axis.get_yticks()) == [] for axis in figure.axes[:2])
