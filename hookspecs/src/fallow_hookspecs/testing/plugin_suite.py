"""What is tried of a plugin in every role: its entry object, its configuration, and the life of an instance."""

import json
import threading

import pytest

from fallow_hookspecs.fitting import hooks_of, level_misfit
from fallow_hookspecs.testing.base import Open, Suite, cluster_of, tries
from fallow_hookspecs.testing.calling import Opener, in_process, wait_until
from fallow_hookspecs.testing.framework import Framework


class PluginSuite(Suite):
    """The clauses `plugin.*`."""

    @tries("plugin.level")
    def test_it_is_written_for_this_level(self, fallow_framework: Framework) -> None:
        misfit = level_misfit(fallow_framework.plugin.api_levels)
        assert not misfit, f"it {misfit}"

    @tries("plugin.hooks")
    def test_its_hooks_fit(self, ready: Framework, fallow_open: Opener) -> None:
        with fallow_open(ready.plugin, cluster_of(ready)) as instance:
            hooks = hooks_of(instance)
        assert hooks.implemented, "it implements none of the hooks"

    @tries("plugin.unknown-keys")
    def test_an_unknown_key_is_an_error(self, fallow_framework: Framework) -> None:
        model = fallow_framework.plugin.model_for(fallow_framework.roles)
        model.model_validate(dict(fallow_framework.spec))
        try:
            model.model_validate({**fallow_framework.spec, "noSuchKeyInAnyPlugin": 1})
        except Exception:
            return
        pytest.fail("a spec with the key noSuchKeyInAnyPlugin is taken")

    @tries("plugin.schema")
    def test_the_configuration_has_a_schema(self, fallow_framework: Framework) -> None:
        schema = fallow_framework.plugin.model_for(fallow_framework.roles).model_json_schema()
        assert json.loads(json.dumps(schema)).get("type") == "object", f"it is no schema of a mapping: {schema}"

    @tries("plugin.close")
    def test_closing_leaves_nothing(self, ready: Framework, opened: Open, fallow_open: Opener) -> None:
        if fallow_open is not in_process:
            pytest.skip("the owner of a thread is known only for an instance in this process")
        before = set(threading.enumerate())
        with opened() as called:
            for hook, call in (
                ("report_capacity", lambda: called.report(ready.nodes)),
                ("list_tasks", lambda: called.list_tasks(ready.nodes[0])),
            ):
                if called.has(hook):
                    call()
        wait_until(
            lambda: not any(thread.is_alive() for thread in set(threading.enumerate()) - before),
            2.0,
            "the threads that it has started have ended",
        )
