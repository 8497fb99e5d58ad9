"""A model's results in a few lines, for someone who decides by them; the sections of the report give the evidence."""

from typing import Any

from resources.warehouse.store import PublishedCopy
from strandline.probe.report import STATUS_WORDS

# Each stored verdict in words for a reader.
VERDICTS = {
    "order_memorised": "its published order was memorised",
    "no_evidence": "no evidence of its published order, which is no proof of absence",
    "order_not_exchangeable": "cannot be judged by its order: neighbours are alike without any model",
    "numerically_fragile": "undecided: it turns on differences within the scoring noise",
    "inconclusive": "undecided",
}


def in_short(copy: PublishedCopy, model: str) -> str | None:
    """One line for each finding, and for what is advertised; None where nothing has been found out about the model."""
    findings = [*_probe(copy, model), *_resources(copy, model), *_benchmarks(copy, model)]
    if not findings:
        return None
    lines = [_advertised(copy, model), *findings]
    longest = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{longest}}  {text}" for name, text in lines)


def _advertised(copy: PublishedCopy, model: str) -> tuple[str, str]:
    rows = _rows(copy, "from models.declared where model = ? and kind = 'reported' and n_claims > 0", model)
    if not rows:
        return "Advertised", "no claim of a cutoff is known (data/declared_cutoffs.csv)"
    row = rows[0]
    first, last = f"{row['declared_from']:%Y-%m}", f"{row['declared_to']:%Y-%m}"
    month = first if first == last else f"{first} to {last}"
    return "Advertised", f"{month}, by {row['n_claims']} claim(s){' that differ' if row['is_conflicting'] else ''}"


def _probe(copy: PublishedCopy, model: str) -> list[tuple[str, str]]:
    rows = _rows(copy, "from probe.current_boundaries where model = ? and estimator = 'calibrated'", model)
    return [("Release probe", _boundary(row)) for row in rows]


def _boundary(row: dict[str, Any]) -> str:
    if row["status"] == "ok":
        return f"its knowledge of releases stops at {row['label']} (95 %: {row['low95']} to {row['high95']})"
    why = f"no date ({STATUS_WORDS.get(row['status'], row['status'])})"
    real, decoy = row["real_yes_rate"], row["decoy_yes_rate"]
    if real is None or decoy is None:
        return why
    return f"{why}: it said YES to {real:.0%} of the releases and to {decoy:.0%} of versions that never were"


def _resources(copy: PublishedCopy, model: str) -> list[tuple[str, str]]:
    rows = _rows(copy, "from perplexity.advertised_and_effective where model = ? order by resource", model)
    return [(f"Resource {row['resource']}", (row["warning"] or _cutoff(row)) + _note(row)) for row in rows]


def _cutoff(row: dict[str, Any]) -> str:
    if row["effective_month"] is None:
        return f"no month ({row['status']}){': ' + row['reason'] if row['reason'] else ''}"
    return f"known as of {row['effective_month']:%Y-%m} (95 %: {row['low95']:%Y-%m} to {row['high95']:%Y-%m})"


def _note(row: dict[str, Any]) -> str:
    """That only a part of the tokens was scored, where it was."""
    return f" ({row['tokens_note']})" if row.get("tokens_note") else ""


def _benchmarks(copy: PublishedCopy, model: str) -> list[tuple[str, str]]:
    rows = _rows(copy, "from contamination.verdicts where model = ? order by benchmark", model)
    return [(f"Benchmark {row['benchmark']}", _verdict(row)) for row in rows]


def _verdict(row: dict[str, Any]) -> str:
    p = "" if row["p_value"] is None else f" (p = {row['p_value']:.2g})"
    return f"{VERDICTS.get(row['verdict'], row['verdict'])}{p}"


def _rows(copy: PublishedCopy, sql: str, model: str) -> list[dict[str, Any]]:
    return copy.query(sql, [model]).to_dicts()
