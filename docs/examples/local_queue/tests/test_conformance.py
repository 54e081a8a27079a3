"""The suite, for `pytest`; `fallow plugins check` runs it, too."""

from fallow_local_queue.suite import TestAgent, TestController, fallow_framework

__all__ = ["TestAgent", "TestController", "fallow_framework"]
