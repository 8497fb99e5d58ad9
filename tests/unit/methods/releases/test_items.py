"""Probe items: which days and releases become questions."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise

import pytest

from strandline.releases import Project, Release
from strandline.releases.facts import facts_folder, read_projects, read_releases
from strandline.releases.flags import flagged
from strandline.releases.items import ItemRules, ProbeItem, chosen_days, of_the_day, probe_items, thinned
from strandline.releases.versions import canonical, existing_forms

START = date(2020, 1, 6)
EVERY_DAY = ItemRules(days_a_week=7, per_project_year=99)


def release(project: str, version: str, day: date, **more: object) -> Release:
    row = Release("npm", project.lower(), project, version, day, "npm")
    return replace(row, **more)  # type: ignore[arg-type]


def world(n_projects: int = 8, n_days: int = 30) -> tuple[list[Release], list[Project]]:
    names = [f"P{i}" for i in range(n_projects)]
    releases = [release(n, f"1.{d}.0", START + timedelta(days=7 * d)) for n in names for d in range(n_days)]
    return releases, [Project(n, i + 1, "npm", n.lower()) for i, n in enumerate(names)]


@pytest.fixture(scope="module")
def committed() -> tuple[list[Release], list[ProbeItem]]:
    """The committed facts, flagged, and the calendar drawn from them."""
    projects = read_projects(facts_folder())
    releases = flagged(read_releases(facts_folder(), projects), date(2026, 11, 29))
    return releases, probe_items(releases, projects)


def test_a_day_needs_enough_items_of_enough_projects_and_decoys() -> None:
    releases, projects = world(n_projects=4)
    with pytest.raises(ValueError, match="no day has 5 askable releases"):
        probe_items(releases, projects, EVERY_DAY)
    releases, projects = world(n_projects=5)
    assert probe_items(releases, projects, EVERY_DAY)[-1].position == 29


def test_flagged_withdrawn_and_untracked_releases_are_never_asked_about() -> None:
    releases, projects = world()
    bad = {"1.3.0": {"flags": ("yanked",)}, "1.4.0": {"withdrawn_at": "x"}, "1.5.0": {"is_stable": False}}
    spoiled = [replace(r, **bad.get(r.version, {})) for r in releases]  # type: ignore[arg-type]
    stranger = release("Stranger", "9.9.9", START)
    items = probe_items([*spoiled, stranger], projects, EVERY_DAY)
    assert not {i.version for i in items} & {*bad, "9.9.9"}


def test_a_day_holds_the_best_known_projects_one_each_before_second_ones() -> None:
    ranks = {"A": 1, "B": 2, "C": 3}
    day = [release("C", "1.0", START), *(release("A", f"1.{n}", START) for n in range(4)), release("B", "2.0", START)]
    rules = ItemRules(per_day=4)
    assert [(r.project, r.version) for r in of_the_day(day, ranks, rules)] == [
        ("A", "1.3"),
        ("B", "2.0"),
        ("C", "1.0"),
        ("A", "1.2"),
    ]


def test_a_prolific_project_is_thinned_evenly_and_keeps_what_opens_a_line() -> None:
    daily = [release("A", f"1.{n // 30}.{n % 30}", START + timedelta(days=n)) for n in range(330)]
    kept = thinned(daily, 24)
    assert len(kept) == 24
    assert {r.version for r in daily if r.version.endswith(".0")} <= {r.version for r in kept}
    months = Counter(r.released_on.month for r in kept if r.released_on)
    assert max(months.values()) <= 4


def test_of_each_half_week_the_day_with_the_most_projects_is_kept() -> None:
    days = {START + timedelta(days=d): [release(f"P{k}", "1.0", START) for k in range(5 + (d % 3))] for d in range(28)}
    kept = chosen_days(days, ItemRules(days_a_week=2))
    halves = {day: [d for d in days if d.toordinal() * 2 // 7 == day.toordinal() * 2 // 7] for day in kept}
    assert sorted(d for half in halves.values() for d in half) == sorted(days)
    assert all(len(days[day]) == max(len(days[d]) for d in half) for day, half in halves.items())
    assert len(chosen_days(days, ItemRules(days_a_week=7))) == 28


def test_the_calendar_ends_where_only_a_few_projects_are_known_any_further() -> None:
    releases, projects = world(n_projects=40, n_days=120)
    ends = START + timedelta(weeks=60)
    known = [
        r for r in releases if r.released_on and (r.released_on <= ends or r.project in {f"P{n}" for n in range(6)})
    ]
    assert probe_items(releases, projects, EVERY_DAY)[-1].released_on > ends
    last = probe_items(known, projects, EVERY_DAY)[-1].released_on
    assert last == ends


def test_the_same_rows_in_any_order_give_the_same_items_and_dataset_version() -> None:
    releases, projects = world()
    shuffled, listed = releases[:], projects[:]
    random.Random(1).shuffle(shuffled)
    random.Random(2).shuffle(listed)
    assert probe_items(shuffled, listed, EVERY_DAY) == probe_items(releases, projects, EVERY_DAY)


def test_any_change_of_an_item_changes_the_dataset_version() -> None:
    releases, projects = world()
    before = probe_items(releases, projects, EVERY_DAY)[0].dataset_version
    after = probe_items(releases[1:], projects, EVERY_DAY)[0].dataset_version
    assert before != after
    assert before.startswith("2020-07-27-")


def test_the_committed_facts_hold_200_projects_and_30_000_stable_releases_from_2015_to_2026(
    committed: tuple[list[Release], list[ProbeItem]],
) -> None:
    stable = [r for r in committed[0] if r.is_stable and r.released_on and 2015 <= r.released_on.year <= 2026]
    assert len(stable) >= 30_000
    assert len({r.project for r in stable}) >= 200
    assert {r.released_on.year for r in stable if r.released_on} == set(range(2015, 2027))


def test_the_committed_calendar_has_days_all_along_and_no_project_fills_it(
    committed: tuple[list[Release], list[ProbeItem]],
) -> None:
    items = committed[1]
    days = sorted({i.released_on for i in items})
    assert len(days) >= 723
    assert max((b - a).days for a, b in pairwise(days) if b < date(2026, 8, 22)) <= 21
    per_project = Counter(i.project for i in items)
    assert max(per_project.values()) <= 0.02 * len(items)
    per_day = Counter((i.released_on, i.project) for i in items)
    assert max(per_day.values()) <= 2


def test_committed_items_have_a_decoy_that_exists_in_no_form_and_is_used_once(
    committed: tuple[list[Release], list[ProbeItem]],
) -> None:
    releases, items = committed
    known: dict[str, list[str]] = {}
    for row in releases:
        known.setdefault(row.project, []).append(row.version)
    forms = {project: existing_forms(versions) for project, versions in known.items()}
    decoys = [(i.project, canonical(i.decoy_version)) for i in items if i.decoy_version]
    assert not [d for d in decoys if d[1] in forms[d[0]]]
    assert len(set(decoys)) == len(decoys) >= 0.95 * len(items)
    kinds = Counter(i.decoy_kind for i in items)
    assert kinds["near_miss"] >= 0.4 * len(items)
    with_decoys = Counter(i.released_on for i in items if i.decoy_version)
    assert min(with_decoys.values()) >= 3


def test_committed_items_prefer_the_projects_that_everyone_knows(
    committed: tuple[list[Release], list[ProbeItem]],
) -> None:
    asked = {i.project for i in committed[1]}
    first = {"Python", "Node.js", "React", "TypeScript", "Next.js", "Vite", "Vue", "Angular", "VS Code", "Kubernetes"}
    first |= {"PyTorch", "NumPy"}
    assert first <= asked
    ranks = {i.project: i.salience_rank for i in committed[1]}
    assert all(ranks[name] <= 12 for name in first)


def test_committed_questions_tell_no_date(committed: tuple[list[Release], list[ProbeItem]]) -> None:
    assert not [i for i in committed[1] if any(str(year) in i.prompt for year in range(2015, 2027))]


def test_committed_facts_name_no_registry() -> None:
    for file in facts_folder().iterdir():
        text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        assert b"://" not in text
