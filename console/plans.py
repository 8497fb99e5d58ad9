"""Plans for a terminal: what a run would take at most, before anything is asked."""

from resources.probe.rows import plan_at_its_price, run_for_settings
from resources.warehouse.store import Reader
from strandline.models import ModelSpec
from strandline.probe.runs import Settings
from strandline.probe.session import Plan


def planned(reader: Reader, spec: ModelSpec, settings: Settings | None = None) -> Plan:
    """What dating a model would take at most from here; asks and stores nothing."""
    _, policy, stored = run_for_settings(reader, spec, settings or Settings())
    return plan_at_its_price(spec, policy, stored)
