"""Fixtures that start a real YARN cluster. They need a JDK (17 or newer) and Maven."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.e2e.yarn.archives import build_archives
from tests.e2e.yarn.cluster import Cluster, StartCluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.jars import TOOLS, Jars, cache_folder, fetch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Here a time limit is for the test itself: fixtures have limits of their own, and the first may fetch jars."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            given = item.get_closest_marker("timeout")
            seconds = given.args[0] if given else 120
            item.add_marker(pytest.mark.timeout(seconds, func_only=True), append=False)


@pytest.fixture(scope="session")
def hadoop_jars() -> Jars:
    """The jars of the release $FALLOW_TEST_HADOOP [3.5.0], fetched when they are not in the cache."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        reason = f"needs a JDK and Maven, not found: {', '.join(missing)}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    jars = fetch(os.environ.get("FALLOW_TEST_HADOOP", "3.5.0"), cache_folder())
    build_archives(jars)
    return jars


@pytest.fixture(scope="module")
def yarn_cluster(hadoop_jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartCluster]:
    """Starts clusters; each is stopped after the module's last test, or earlier by its `stop`."""
    with ExitStack() as stack:

        def start(setup: Setup) -> Cluster:
            return stack.enter_context(Cluster(hadoop_jars, tmp_path_factory.mktemp("yarn") / "cluster", setup))

        yield start
