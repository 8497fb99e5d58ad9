"""Declared cutoffs: what others claim about a model, judged one claim at a time and never merged.

A claim is read, not believed. It never enters an estimate (a model's own statement about itself is not even collected);
it stands beside the estimate, with its source. Reading the committed file is here, fetching newer claims is not.
"""

import csv
import re
from calendar import monthrange
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import Literal

CLAIMS_VERSION = "1"
"""Raise it when the same claims would give other judgements: tables made by it then show as stale."""

Precision = Literal["day", "month", "year"]
"""How exactly a date is stated."""

KINDS = ("reported", "training_data", "reliable_knowledge", "fine_tuning")
"""What a claimed date is said to be; the first where the source does not say."""

_PRECISIONS: dict[int, Precision] = {0: "year", 1: "month", 2: "day"}
"""By the number of parts that follow the year."""

_PARTIAL = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", re.ASCII)
"""ISO 8601 down to the day, in ASCII digits."""

_DATE_IN_NAME = re.compile(r"(?<!\d)(20\d{2})-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])(?!\d)")
"""A day in a model's name, as in gpt-4o-2024-08-06 or claude-3-5-sonnet-20241022."""

_MONTH_IN_NAME = re.compile(r"-(2\d)(0[1-9]|1[0-2])(?=$|-)")
"""A month in a model's name, as in mistral-large-2411."""

_SAME_MEANING = {"reported": "training_data"}
"""Kinds that are compared with each other: who states a cutoff without saying of what means the training data."""

_EARLIEST = date(2010, 1, 1)
"""No language model of this kind was trained before; an earlier date is a slip."""


@dataclass(frozen=True)
class PartialDate:
    """A date known to a day, a month or a year: every day from ``first`` to ``last`` is meant."""

    first: date
    last: date
    precision: Precision

    def overlaps(self, other: "PartialDate") -> bool:
        """Whether one day could be meant by both."""
        return self.first <= other.last and other.first <= self.last

    def days_from(self, other: "PartialDate") -> int:
        """Days between the nearest ends; 0 where the two overlap."""
        return 0 if self.overlaps(other) else max((self.first - other.last).days, (other.first - self.last).days)


@dataclass(frozen=True)
class Claim:
    """One source's statement about one model, as committed in ``data/declared_cutoffs.csv``.

    ``kind`` is what the date is said to be: ``reported`` (not said), ``training_data``, ``reliable_knowledge`` or
    ``fine_tuning``. ``value`` is the date at the precision in which it is stated, empty where none is stated, and
    ``stated`` the source's own words. ``released_on`` is the release date that the same source gives.
    """

    model: str
    provider: str
    name: str
    kind: str
    value: str
    precision: str
    stated: str
    released_on: str
    is_open: bool | None
    context_length: int | None
    source: str
    url: str
    retrieved_on: date | None
    note: str


@dataclass(frozen=True)
class DeclaredCutoff:
    """A judged claim: a row of ``models.declared_cutoffs``.

    ``is_valid`` is false where no cutoff can be read from the claim or where it is impossible, and ``reason`` says why.
    ``flags`` name what is odd without being impossible: ``conflict`` (another source claims other days),
    ``same_month_as_release``, ``release_contradicts_name``.
    """

    model: str
    source: str
    kind: str
    url: str
    value: date | None
    value_to: date | None
    precision: Precision | None
    stated: str
    retrieved_on: date | None
    is_valid: bool
    flags: tuple[str, ...]
    reason: str | None


def parse_partial_date(text: str) -> PartialDate:
    """A date from ``2024``, ``2024-04`` or ``2024-04-30``; ValueError for any other form and for impossible dates."""
    match = _PARTIAL.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{text!r} is no date of the form 2024, 2024-04 or 2024-04-30")
    year, *rest = (int(part) for part in match.groups() if part is not None)
    if not 1 <= year <= 9999 or (rest and not 1 <= rest[0] <= 12):
        raise ValueError(f"{text!r} is an impossible date")
    month_to = rest[0] if rest else 12
    last_day = monthrange(year, month_to)[1]
    if len(rest) == 2 and not 1 <= rest[1] <= last_day:
        raise ValueError(f"{text!r} is an impossible date")
    first = date(year, rest[0] if rest else 1, rest[1] if len(rest) == 2 else 1)
    last = date(year, month_to, rest[1] if len(rest) == 2 else last_day)
    return PartialDate(first, last, _PRECISIONS[len(rest)])


def read_claims(path: str | Path) -> list[Claim]:
    """The committed claims, in the order of the file; ValueError naming the line of a row that cannot be used."""
    with Path(path).open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        expected = [f.name for f in fields(Claim)]
        if rows.fieldnames != expected:
            raise ValueError(f"{path}: the columns must be {', '.join(expected)}")
        return [_claim(row, f"{path}, line {rows.line_num}") for row in rows]


def judge(claims: Sequence[Claim], today: date) -> list[DeclaredCutoff]:
    """Judge each claim on its own and against the other claims for the same model.

    A claim is not valid where it states no date or an impossible one, or where its earliest day lies after the latest
    day of the release that the same source states, after the day on which it was read (``today`` where unknown), or
    before 2010. Claims whose days exclude each other are both kept, both flagged ``conflict``, and both stay valid:
    which of two sources is right is not decided here. Claims of different kinds do not conflict; ``reported`` is
    compared with ``training_data``.

    Raises ValueError where one source makes two claims of one kind for a model.
    """
    if not isinstance(today, date):
        raise ValueError(f"today is a date, got {today!r}")
    _refuse_repeats(claims)
    by_model: dict[str, list[Claim]] = {}
    for claim in claims:
        by_model.setdefault(claim.model, []).append(claim)
    return [_judged(claim, by_model[claim.model], today) for claim in claims]


def _claim(row: dict[str, str], where: str) -> Claim:
    if None in row or None in row.values():
        raise ValueError(f"{where}: the number of columns is wrong")
    if not row["model"].strip() or not row["source"].strip():
        raise ValueError(f"{where}: model and source must be given")
    if row["kind"] not in KINDS:
        raise ValueError(f"{where}: kind must be one of {', '.join(KINDS)}")
    if row["is_open"] not in ("", "true", "false"):
        raise ValueError(f"{where}: is_open must be true, false or empty")
    try:
        retrieved_on = date.fromisoformat(row["retrieved_on"]) if row["retrieved_on"] else None
        context_length = int(row["context_length"]) if row["context_length"] else None
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    typed = {"retrieved_on": retrieved_on, "context_length": context_length, "is_open": _truth(row["is_open"])}
    return Claim(**(row | typed))  # type: ignore[arg-type]


def _truth(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text)


def _refuse_repeats(claims: Iterable[Claim]) -> None:
    seen: set[tuple[str, str, str]] = set()
    for claim in claims:
        key = (claim.model, claim.source, claim.kind)
        if key in seen:
            raise ValueError(f"{claim.source} makes two claims of kind {claim.kind} for {claim.model}")
        seen.add(key)


def _judged(claim: Claim, same_model: Sequence[Claim], today: date) -> DeclaredCutoff:
    when = _readable(claim.value)
    problem = _problem(claim, when, today)
    conflicts = [] if when is None or problem else _conflicts(claim, when, same_model, today)
    flags = [*(["conflict"] if conflicts else []), *_oddities(claim, when)]
    return DeclaredCutoff(
        model=claim.model,
        source=claim.source,
        kind=claim.kind,
        url=claim.url,
        value=when.first if when else None,
        value_to=when.last if when else None,
        precision=when.precision if when else None,
        stated=claim.stated,
        retrieved_on=claim.retrieved_on,
        is_valid=problem is None,
        flags=tuple(flags),
        reason=problem or ("; ".join(conflicts) or None),
    )


def _readable(text: str) -> PartialDate | None:
    try:
        return parse_partial_date(text)
    except ValueError:
        return None


def _problem(claim: Claim, when: PartialDate | None, today: date) -> str | None:
    if when is None:
        text = claim.value or claim.stated
        return f"no date can be read from {text!r}" if text else "no cutoff is stated"
    if claim.precision and claim.precision != when.precision:
        return f"stated with precision {claim.precision}, but {claim.value} has precision {when.precision}"
    release = _readable(claim.released_on)
    if release and when.first > release.last:
        return f"the claimed cutoff {claim.value} is after the release {claim.released_on} that the same source states"
    if when.first > min(today, claim.retrieved_on or today):
        return f"the claimed cutoff {claim.value} lies in the future of the claim"
    if when.last < _EARLIEST:
        return f"the claimed cutoff {claim.value} is older than language models of this kind"
    return None


def _conflicts(claim: Claim, when: PartialDate, same_model: Sequence[Claim], today: date) -> list[str]:
    meaning = _SAME_MEANING.get(claim.kind, claim.kind)
    found = []
    for other in same_model:
        other_when = _readable(other.value)
        is_comparable = other.source != claim.source and _SAME_MEANING.get(other.kind, other.kind) == meaning
        if is_comparable and other_when and not _problem(other, other_when, today) and not when.overlaps(other_when):
            found.append(f"{other.source} states {other.value} instead, {when.days_from(other_when)} days away")
    return found


def _oddities(claim: Claim, when: PartialDate | None) -> list[str]:
    release = _readable(claim.released_on)
    named = _date_in_name(claim.model)
    flags = []
    if (
        when
        and release
        and when.precision != "year"
        and (when.first.year, when.first.month) == (release.first.year, release.first.month)
    ):
        flags.append("same_month_as_release")
    if release and named and release.days_from(named) > 62:
        flags.append("release_contradicts_name")
    return flags


def _date_in_name(model: str) -> PartialDate | None:
    name = model.rsplit("/", 1)[-1]
    if match := _DATE_IN_NAME.search(name):
        return _readable("-".join(match.groups()))
    if match := _MONTH_IN_NAME.search(name):
        return _readable(f"20{match[1]}-{match[2]}")
    return None
