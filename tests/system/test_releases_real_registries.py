"""The real registries: pip's, asked for a package that the project uses, and npm's, for one that you name."""

import os
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from resources.network.http import Http, Limits
from resources.releases.refresh import Outcome, initial_state, refresh
from resources.releases.registries import Registries, configured
from strandline.releases import Release
from strandline.releases.facts import facts_folder, read_projects, read_releases


def ask(folder: Path, name: str) -> tuple[Outcome, list[Release]]:
    """Refresh one tracked project from its real registry; the test is skipped where that cannot be reached."""
    projects = read_projects(facts_folder())
    project = next(p for p in projects if p.project == name)
    known = [r for r in read_releases(facts_folder(), projects) if r.project == name]
    endpoints = configured()
    limits = Limits(connect=5, read=20, attempts=2, max_wait=5)
    with Http(folder, limits=limits, authorization=endpoints.authorization, min_interval=1.0) as http:
        target = (project, known, initial_state(project, None, len(known)))
        (outcome,) = refresh([target], Registries(http, endpoints), datetime.now(UTC))
    if outcome.state.status == "unreachable":
        pytest.skip(f"the registry cannot be reached from here: {outcome.state.error}")
    return outcome, known


def test_the_python_index_is_read_and_agrees_with_the_committed_facts(tmp_path: Path) -> None:
    outcome, known = ask(tmp_path, "packaging")
    assert outcome.state.status == "ok", outcome.state.error
    found = {r.version: r for r in outcome.releases or []}
    assert found["24.0"].released_on == date(2024, 3, 10)
    assert not [r.version for r in found.values() if "sources_disagree" in r.flags]
    assert {r.version for r in known} <= set(found)


def test_the_npm_registry_agrees_with_the_committed_facts_or_is_known_for_a_mirror(tmp_path: Path) -> None:
    project = os.environ.get("STRANDLINE_TEST_NPM_PROJECT")
    if not project:
        pytest.skip("this project uses no npm package; name a tracked one in STRANDLINE_TEST_NPM_PROJECT to ask npm")
    outcome, known = ask(tmp_path, project)
    assert outcome.state.status in ("ok", "mirror_dates"), outcome.state.error
    found = {r.version: r for r in outcome.releases or []}
    assert len(found) >= len(known) > 0
    wrong = [v.version for v in known if abs((found[v.version].released_on - v.released_on).days) > 2]  # type: ignore[operator]
    assert not wrong
