import dataclasses
import inspect
import subprocess
import sys

import pluggy
import pytest

import fallow_hookspecs
from fallow_hookspecs import PROJECT, Broken, PluginError, TryLater, hookimpl, hooks

HOOKS = ("report_capacity", "list_tasks", "kill_tasks", "set_cgroup_parent")
VALUES = [value for value in vars(fallow_hookspecs).values() if dataclasses.is_dataclass(value)]


def manager() -> pluggy.PluginManager:
    made = pluggy.PluginManager(PROJECT)
    made.add_hookspecs(hooks)
    return made


def test_there_are_exactly_the_four_hooks() -> None:
    assert sorted(vars(manager().hook)) == sorted(HOOKS)


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_says_when_it_is_called_in_which_lane_what_repeating_means_and_what_errors_do(name: str) -> None:
    text = inspect.getdoc(getattr(hooks, name)) or ""
    for part in ("**Called** on the ", " lane)", ":return:", "**Repeating**", "**Errors**"):
        assert part in text, f"{name} does not say {part!r}"


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_documents_each_argument_and_carries_its_deadline(name: str) -> None:
    arguments = list(inspect.signature(getattr(hooks, name)).parameters)
    text = inspect.getdoc(getattr(hooks, name)) or ""
    assert "timeout_seconds" in arguments
    assert [argument for argument in arguments if f":param {argument}:" not in text] == []


def test_the_first_answer_counts_and_an_implementation_may_leave_out_arguments() -> None:
    class Instance:
        @hookimpl
        def list_tasks(self) -> str:
            return "answer"

    made = manager()
    made.register(Instance())
    assert made.hook.list_tasks(node=None, timeout_seconds=1.0) == "answer"


def test_a_misspelt_hook_is_found_when_the_plugin_is_loaded() -> None:
    class Instance:
        @hookimpl
        def list_task(self) -> None: ...

    made = manager()
    made.register(Instance())
    with pytest.raises(pluggy.PluginValidationError, match="list_task"):
        made.check_pending()


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.__name__)
def test_every_value_is_frozen_slotted_and_documented(value: type) -> None:
    assert value.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "__slots__" in vars(value)
    assert value.__doc__
    assert not value.__doc__.startswith(f"{value.__name__}("), "the docstring is the generated one"


def test_every_public_name_is_exported_once_and_exists() -> None:
    assert len(set(fallow_hookspecs.__all__)) == len(fallow_hookspecs.__all__)
    assert [name for name in fallow_hookspecs.__all__ if not hasattr(fallow_hookspecs, name)] == []


def test_the_errors_that_mean_something_to_core_carry_what_core_needs() -> None:
    later = TryLater("failing over", after_seconds=2.5)
    assert isinstance(later, PluginError)
    assert (str(later), later.after_seconds) == ("failing over", 2.5)
    assert issubclass(Broken, PluginError)


def test_importing_the_contract_brings_in_pluggy_and_the_standard_library_only() -> None:
    code = "import sys; before = set(sys.modules); import fallow_hookspecs; print(*(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    found = {name.partition(".")[0] for name in run.stdout.split()}
    assert found - sys.stdlib_module_names <= {"fallow_hookspecs", "pluggy"}
