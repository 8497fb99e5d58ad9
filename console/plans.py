"""Plans for a terminal: what a run would take at most, before anything is asked."""

from collections.abc import Mapping
from typing import Any

from resources.configured import BenchmarkListResource, ContaminationResource, NetworkResource
from resources.network.http import FetchError
from resources.probe.rows import plan_at_its_price, run_for_settings
from resources.warehouse.store import Reader, Warehouse
from strandline.models import ModelSpec
from strandline.probe.runs import Settings
from strandline.probe.session import Plan


def planned(reader: Reader, spec: ModelSpec, settings: Settings | None = None) -> Plan:
    """What dating a model would take at most from here; asks and stores nothing."""
    _, policy, stored = run_for_settings(reader, spec, settings or Settings())
    return plan_at_its_price(spec, policy, stored)


def plan_text(store: Warehouse, spec: ModelSpec, resources: Mapping[str, Any]) -> str:
    """What dating a model would take at most from here, and what testing it on the first listed benchmark takes."""
    ahead = estimated_plan(resources["benchmark_list"], resources["contamination"], resources["network"])
    return "\n\n".join(part for part in (planned(store, spec).text(), ahead) if part)


def estimated_plan(
    listed: BenchmarkListResource, contamination: ContaminationResource, network: NetworkResource
) -> str | None:
    """What a test of the first listed benchmark can reach and takes where nothing is scored yet; no model is loaded."""
    spec = next(iter(listed.read()), None)
    if spec is None:
        return None
    title = f"contamination by {spec.benchmark}, where nothing is scored yet, a token taken as three characters"
    try:
        plan = contamination.open().estimated(listed.load(spec, network))
    except (ValueError, FetchError) as error:
        return f"{title}\nno plan: {error}"
    return f"{title}\n{plan.text()}"
