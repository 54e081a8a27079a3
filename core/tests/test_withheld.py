from types import SimpleNamespace
from typing import cast

from core.tests.test_offer_too_small import ALL, KEY, ROW, WAITS, due

from fallow_core.controller.withheld import Withheld
from fallow_core.plugins.session import ClusterSession


def test_what_is_not_made_is_remembered_with_its_reason_until_the_next_round_of_its_node() -> None:
    cluster = cast(ClusterSession, SimpleNamespace(rows={KEY: ROW}, pending=WAITS, capabilities=ALL))
    withheld = Withheld()
    assert withheld.step("n1", [due(8000, 7)], {"yarn/a": cluster}) == []
    assert withheld.reasons.keys() == {KEY}
    assert withheld.step("n2", [], {}) == []
    assert withheld.reasons.keys() == {KEY}
    made = [due(8000, 8)]
    assert withheld.step("n1", made, {"yarn/a": cluster}) == made
    assert withheld.reasons == {}
