"""The report's capabilities: which resources a ResourceManager's scheduler honours and takes back. Pure."""

from fallow_hookspecs import Capabilities, ResourceCapability
from fallow_yarn.rm.admin import FAR_TIMEOUT_MS
from fallow_yarn.rm.facts import Calculator
from fallow_yarn.rm.readings import Facts


def capabilities(facts: Facts) -> Capabilities:
    """What this ResourceManager does about sizes.

    The CapacityScheduler's default calculator counts vcores and ignores them. From 3.3 on a scheduler terminates what
    exceeds a node's size when the over-commit timeout expires, and charges no application for that; so an offer has to
    be renewed before its far timeout expires.
    """
    cpu_honoured = facts.setup is None or facts.setup.calculator is not Calculator.DEFAULT
    takes_back = facts.identity.takes_back
    return Capabilities(
        cpu=ResourceCapability(honoured=cpu_honoured, takes_back=takes_back and cpu_honoured, take_back_charged=False),
        memory=ResourceCapability(honoured=True, takes_back=takes_back, take_back_charged=False),
        ends_single_tasks=True,
        ends_gracefully=True,
        reports_progress=True,
        offer_lasts_seconds=FAR_TIMEOUT_MS // 1000 if takes_back else None,
    )
