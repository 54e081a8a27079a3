"""Turns the result of an update into the contract's answer to an offer. Pure."""

from collections.abc import Mapping

from fallow_hookspecs import OfferAnswer, Refusal, Resources
from fallow_yarn.errors import AccessDeniedError, StandbyError, UnknownNodeError, YarnError
from fallow_yarn.model.size import Size, cpu_milli, memory_bytes, resources
from fallow_yarn.rm.admin import UpdateAnswer

REFUSALS: Mapping[type[YarnError], Refusal] = {
    UnknownNodeError: Refusal.UNKNOWN_NODE,
    AccessDeniedError: Refusal.ACCESS_DENIED,
    StandbyError: Refusal.NOT_LEADER,
}


def answer(node: str, update: UpdateAnswer, size: Size, offered: Resources, vcore_milli: int) -> OfferAnswer:
    """The answer to one offer. It is `FAILED`, not refused, if the call may still be carried out."""
    error = update.error
    if error is None:
        if (offered.cpu_milli, offered.memory_bytes) == (cpu_milli(size, vcore_milli), memory_bytes(size)):
            return OfferAnswer(node=node, framework_node=update.node_id, accepted=offered)
        reason = f"rounded down to whole vcores of {vcore_milli} milli-cores and to MiB"
        taken = resources(size, vcore_milli)
        return OfferAnswer(node=node, framework_node=update.node_id, accepted=taken, reason=reason)
    known = (refusal for kind, refusal in REFUSALS.items() if isinstance(error, kind) and not error.maybe_sent)
    refusal = next(known, Refusal.FAILED)
    return OfferAnswer(node=node, framework_node=update.node_id, accepted=None, refusal=refusal, reason=str(error))
