"""Versions that never were, to ask about beside real ones.

Two kinds. `patch_jump` is the seed's: the last number raised by 37, 49, 73 or 91. `near_miss` is the next patch of a
line that has ended (4.34.9 where 4.34.8 was its last), which convention alone cannot tell from a real version. Neither
is ever a version that exists in any form: pre-releases, yanked, unpublished and tag-only versions count as existing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from strandline.numeric_input import whole_number
from strandline.releases import Release
from strandline.releases.spelled_dates import spells_day
from strandline.releases.versions import canonical, existing_forms, is_plain, numbers_of, spelled_numbers

DecoyKind = Literal["patch_jump", "near_miss"]
JUMPS = (37, 49, 73, 91)
"""The jumps of the seed (M30): far beyond what a line reaches between two questions, and prime to round numbers."""
QUIET_DAYS = 365
"""A line without any release for a year has ended: real lines that came back later would make a decoy true, and the
check `decoys_do_not_exist` names it."""
NEAR_MISSES_A_LINE = 3
"""Three successive patches of an ended line are still likely numbers; a fourth would tell by its distance."""
PARTIAL_SOURCES = frozenset({"scoop-main", "scoop-extras", "transcribed"})
"""Lists that do not hold every release, so that the next patch may well exist."""
UNRELIABLE = frozenset({"future", "sources_disagree", "too_early", "mirror_dates", "tells_date"})
"""Flags of a line that gives no near miss: its days cannot be relied on, or its versions spell them."""


@dataclass(frozen=True)
class Decoy:
    """A version that does not exist, and how it was made."""

    version: str
    kind: DecoyKind


def with_last(version: str, last: int) -> str:
    """A plain version with another last number, zero-padded as the original's was ('2.07' -> '2.08')."""
    head, _, tail = _plain(version).rpartition(".")
    return f"{head}.{str(last).zfill(len(tail) if tail.startswith('0') and len(tail) > 1 else 1)}"


def line_of(version: str) -> tuple[int, ...]:
    """The line that a plain version belongs to: all its numbers but the last. ValueError for any other text."""
    return tuple(map(int, _plain(version).split(".")[:-1]))


def _plain(version: str) -> str:
    if not is_plain(version):
        raise ValueError(f"{version[:80]!r} is not a version of two to four numbers")
    return version


def patch_jump(
    version: str, taken: Collection[tuple[int, ...]], project: str = "", day: date | None = None
) -> Decoy | None:
    """The seed's decoy: the last number + 37, 49, 73 or 91, the first free one from where a digest says.

    `taken` holds the canonical forms that exist or are already used. None where all four are taken, or spell the
    `day` that is asked about. ValueError where the version is not plain.
    """
    start = hashlib.sha256(f"{project} {version}".encode()).digest()[0]
    last = int(_plain(version).rpartition(".")[2])
    for k in range(len(JUMPS)):
        candidate = with_last(version, last + JUMPS[(start + k) % len(JUMPS)])
        if canonical(candidate) not in taken and is_plain(candidate) and not (day and spells_day(candidate, day)):
            return Decoy(candidate, "patch_jump")
    return None


def ended_lines(releases: Sequence[Release], quiet_days: int = QUIET_DAYS) -> dict[tuple[int, ...], str]:
    """Lines of ONE project that have ended, and the numbers of their highest version in any form, as written.

    A line has ended when a later line has been opened and nothing, not even a pre-release, has come out in it for
    `quiet_days` before the newest release that is known of the project (what came after that nobody has seen). Lines
    with a version of unknown or doubtful date are left out, those whose versions spell their date, and those with a
    version from a source that does not list every release (the next patch may well exist there).
    """
    whole_number(quiet_days, "the days after which a line has ended", 0)
    last_seen: dict[tuple[int, ...], date] = {}
    highest: dict[tuple[int, ...], tuple[int, str]] = {}
    unsure: set[tuple[int, ...]] = set()
    for release in releases:
        numbers = numbers_of(release.version)
        if len(numbers) < 2:
            continue
        line = numbers[:-1]
        highest[line] = max(highest.get(line, (-1, "")), (numbers[-1], spelled_numbers(release.version)))
        if release.released_on is None or release.source in PARTIAL_SOURCES or not UNRELIABLE.isdisjoint(release.flags):
            unsure.add(line)
        else:
            last_seen[line] = max(release.released_on, last_seen.get(line, date.min))
    newest = max(last_seen, default=())
    last_known = max(last_seen.values(), default=date.max)
    return {
        line: highest[line][1]
        for line, seen in last_seen.items()
        if line not in unsure and line < newest and (last_known - seen).days >= quiet_days
    }


def decoys_for(releases: Sequence[Release], askable: Iterable[Release]) -> dict[str, Decoy]:
    """A decoy for each askable version of ONE project, no two alike.

    releases: everything known of the project, in any form. The next patches of an ended line, up to
    `NEAR_MISSES_A_LINE`, go to that line's own releases, the newest first, and what is left of them to releases of
    later lines, the nearest first. Others get the seed's jump, and nothing where no jump is free. Deterministic: the
    same rows give the same decoys in any order.
    """
    taken = existing_forms(release.version for release in releases)
    free = _near_misses(ended_lines(releases), taken)
    ordered = sorted(askable, key=lambda r: (line_of(r.version), numbers_of(r.version), r.version), reverse=True)
    chosen: dict[str, Decoy] = {}
    for choose in (_own_line, _earlier_line):
        for release in ordered:
            if release.version in chosen or not (near := choose(line_of(release.version), free)):
                continue
            if release.released_on is None or not spells_day(near, release.released_on):
                chosen[release.version] = Decoy(near, "near_miss")
    taken |= existing_forms(decoy.version for decoy in chosen.values())
    for release in ordered:
        if release.version in chosen:
            continue
        if jumped := patch_jump(release.version, taken, release.project, release.released_on):
            chosen[release.version] = jumped
            taken.add(canonical(jumped.version) or ())
    return chosen


Lines = dict[tuple[int, ...], list[str]]


def _near_misses(ends: dict[tuple[int, ...], str], taken: Collection[tuple[int, ...]]) -> Lines:
    """The versions after each ended line's last one that are free, the nearest last so that it is taken first."""
    free: Lines = {}
    for line, last in ends.items():
        after = (numbers_of(last)[-1] + step for step in range(NEAR_MISSES_A_LINE, 0, -1))
        candidates = [with_last(last, number) for number in after]
        free[line] = [version for version in candidates if is_plain(version) and canonical(version) not in taken]
    return free


def _own_line(line: tuple[int, ...], free: Lines) -> str | None:
    return free[line].pop() if free.get(line) else None


def _earlier_line(line: tuple[int, ...], free: Lines) -> str | None:
    """The next patch of the nearest earlier line with as many numbers that has one left."""
    earlier = [other for other, versions in free.items() if versions and other < line and len(other) == len(line)]
    return free[max(earlier)].pop() if earlier else None
