"""The fixtures of the real YARN."""

from tests.e2e.yarn.conftest import hadoop_jars, yarn_cluster

__all__ = ["hadoop_jars", "yarn_cluster"]
