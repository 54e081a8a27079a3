"""The fleet gives the same integers as the plain version: sizes, and what is due, over several rounds."""

from dataclasses import replace

import pytest
from core.tests.fleet_values import Compared, Inputs
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.timeout(300)  # it is compiled by whichever test comes first
STEPS = (1.0, 5.0, 11.0, 61.0)


@pytest.mark.parametrize("large", [False, True])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_all_nodes_at_once_are_computed_as_each_one_alone(large: bool, seed: int) -> None:
    inputs, compared, now = Inputs(seed, large=large), Compared(), 10_000.0
    pending, shapes, policy = inputs.pending(), inputs.shapes(), inputs.publishing()
    names = [str(i) for i in range(100)]
    for name in names:
        compared.write(replace(inputs.node(name, now, pending, shapes), publishing=policy))
    due = compared.check_all(policy, now)
    for _ in range(3):
        now += inputs.random.choice(STEPS)
        for name in inputs.random.sample(names, 25):
            changed = replace(inputs.node(name, now, pending, shapes), publishing=policy)
            if inputs.random.random() < 0.5:
                compared.check_one(changed)
            else:
                compared.write(changed)
        due += compared.check_all(policy, now)
    assert due, "nothing was due, so nothing was compared"
