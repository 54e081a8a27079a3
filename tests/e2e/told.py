"""The same calls to a kernel's control groups and to the fake of the unit tests; both have to answer the same."""

from collections.abc import Callable, Mapping, Sequence

from fallow_core.node.cgroups import cpu
from fallow_core.node.cgroups.hierarchy import Hierarchy

Write = tuple[str, str, str]
"""Below which group, which file, and what is written."""


def tried(call: Callable[..., object], *arguments: str) -> object:
    """What a call returns, or the number of the error that it raises."""
    try:
        return call(*arguments)
    except OSError as error:
        return error.errno


def control_files(hierarchy: Hierarchy, top: str, names: Sequence[str]) -> dict[str, object]:
    """What these files of all groups from `top` on say."""
    groups = [top, *sorted(hierarchy.below(top))]
    return {f"{group}/{name}": tried(hierarchy.read, group, name) for group in groups for name in names}


def of_writes(hierarchy: Hierarchy, top: str, writes: Sequence[Write]) -> dict[str, object]:
    """What became of each write, and what the file then says."""
    answers: dict[str, object] = {}
    for at, (group, name, text) in enumerate(writes):
        asked = f"{at}: {text} to {group}/{name}"
        answers[asked] = tried(hierarchy.write, top + group, name, text)
        if name != "cpu.stat":  # no two kernels say the same
            answers[f"{asked}, which then says"] = tried(hierarchy.read, top + group, name)
    return answers


def told(
    hierarchy: Hierarchy,
    top: str,
    pid: int,
    writes: Sequence[Write],
    names: Sequence[str],
    populated: Sequence[Write] = (),
) -> dict[str, object]:
    """All that a hierarchy answers, by what it was asked.

    :param names: files that each group has; the first is there as soon as the controller is.
    :param populated: writes while a process is in c1/deep.
    """
    for group in ("", "/c1"):
        hierarchy.make(top + group, names[0])
        hierarchy.pass_on(top + group)
    for group in ("/c1/deep", "/c2"):
        hierarchy.make(top + group, names[0])
    first = hierarchy.identity(f"{top}/c2")
    answers = {f"at first: {name}": text for name, text in control_files(hierarchy, top, names).items()}
    answers |= of_writes(hierarchy, top, writes)
    answers |= control_files(hierarchy, top, names)
    hierarchy.move(pid, f"{top}/c1/deep")
    answers |= {f"with a process, {asked}": told for asked, told in of_writes(hierarchy, top, populated).items()}
    answers |= {
        "group of the process": hierarchy.group_of(pid),
        "the process in deep": hierarchy.processes(f"{top}/c1/deep") == [pid],
        "processes of the top": hierarchy.processes(top),
        "remove c1 with a group": tried(hierarchy.remove, f"{top}/c1"),
        "remove deep with a process": tried(hierarchy.remove, f"{top}/c1/deep"),
    }
    hierarchy.move(pid, f"{top}/c2")
    answers |= {
        "pass on with a process": tried(hierarchy.write, f"{top}/c2", "cgroup.subtree_control", "+memory"),
        "remove deep": tried(hierarchy.remove, f"{top}/c1/deep"),
        "remove c1": tried(hierarchy.remove, f"{top}/c1"),
        "read of what is gone": tried(hierarchy.read, f"{top}/c1", names[0]),
        "groups": sorted(hierarchy.below(top)),
        "throttled": cpu.throttled_seconds(hierarchy, top),
    }
    answers |= {f"has {name}": hierarchy.has(top, name) for name in (*names, "cpu.none")}
    hierarchy.move(pid, "")
    hierarchy.remove(f"{top}/c2")
    hierarchy.make(f"{top}/c2", names[0])
    same = hierarchy.identity(f"{top}/c2") == first
    return {**answers, "a new group is the old one": same, "identity of none": hierarchy.identity(f"{top}/c9")}


def differences(by_fake: Mapping[str, object], by_kernel: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    """Where the two differ."""
    asked = by_fake.keys() | by_kernel.keys()
    return {each: pair for each in asked if (pair := (by_fake.get(each), by_kernel.get(each)))[0] != pair[1]}
