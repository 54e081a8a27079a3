import click
import pytest

from fallow_yarn.lifecycle.duration import seconds

CONTEXT, OPTION = click.Context(click.Command("decommission")), click.Option(["--grace"])


@pytest.mark.parametrize(
    ("value", "expected"),
    [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2h0m5s", 7205), ("0s", 0), ("500ms", 1), ("1s1ms", 2)],
)
def test_a_grace_is_a_duration_as_in_the_config(value: str, expected: int) -> None:
    assert seconds(CONTEXT, OPTION, value) == expected


@pytest.mark.parametrize("value", ["", "10", "soon", "1.5h", "30m1h", "-1s", "1 h", "10M"])
def test_what_is_no_duration_is_refused_with_examples(value: str) -> None:
    with pytest.raises(click.BadParameter, match="expected a duration such as 90s, 10m or 1h30m"):
        seconds(CONTEXT, OPTION, value)


def test_a_grace_that_the_resource_manager_cannot_be_told_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="expected at most 2147483647s"):
        seconds(CONTEXT, OPTION, "999999999h")
