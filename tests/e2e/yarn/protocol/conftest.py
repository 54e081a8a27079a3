"""Fixtures of the tests that the embedded YARN and real ones have to pass alike.

`$FALLOW_TEST_YARN` says which: `embedded` (the default, which needs no Java), `real`, or both with a comma between.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.e2e.yarn.protocol.clusters import KINDS, EmbeddedOne, Manager, RealOne, Shape, Yarn, standby_of

StartYarn = Callable[[Shape], Yarn]


@pytest.fixture(scope="module", params=KINDS)
def start_yarn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartYarn]:
    """Starts YARNs of one kind; they are stopped after the module's last test."""
    with ExitStack() as stack:

        def start(shape: Shape) -> Yarn:
            folder = tmp_path_factory.mktemp("yarn") / "cluster"
            made: EmbeddedOne | RealOne
            if request.param == "real":
                made = RealOne(request.getfixturevalue("hadoop_jars"), folder, shape)
            else:
                made = EmbeddedOne(folder, shape)
            stack.callback(made.stop)
            return made

        yield start


@pytest.fixture(params=KINDS)
def standby(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    """A ResourceManager that stands by, while no other one is active."""
    jars = request.getfixturevalue("hadoop_jars") if request.param == "real" else None
    with standby_of(jars, tmp_path / "cluster") as manager:
        yield manager
