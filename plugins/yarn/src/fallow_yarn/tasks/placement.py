"""The cgroups of the containers on this host, and which setting or which move would change them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from fallow_hookspecs import Placement, Process, TaskPlacement
from fallow_yarn.nm.procfs import PROC_ROOT, own_cgroups, read_cgroups, read_command
from fallow_yarn.tasks.process_tree import Processes

HIERARCHY: Final = "yarn.nodemanager.linux-container-executor.cgroups.hierarchy"
EXECUTOR: Final = "yarn.nodemanager.container-executor.class"


def placement(
    container_ids: Iterable[str],
    found: Mapping[str, Processes],
    known: Mapping[Process, tuple[str, ...]],
    parent: str,
    proc_root: Path = PROC_ROOT,
) -> Placement:
    """For each container whether it is below `parent`, or else which processes may be moved or which setting decides.

    `known`: the cgroups that a container owns, by its first process, where they were read already.

    A container without a directory of its own, or with one that its NodeManager did not make, can be moved. A directory
    that the NodeManager made stays, since the NodeManager removes it in the end. New tasks follow if every running
    container is below `parent`.
    """
    parent = parent.strip("/")
    tasks: list[TaskPlacement] = []
    made: list[bool] = []
    for container_id in container_ids:
        if container_id not in found:
            tasks.append(TaskPlacement(task_id=container_id))
            continue
        place, is_made = _place(container_id, found[container_id], known, parent, proc_root)
        tasks.append(place)
        made.append(is_made)
    if not made:
        reason = "no container runs, so it is unknown where new ones are placed"
    elif not all(made):
        reason = (
            f"NodeManagers make no cgroups here: set {EXECUTOR} to LinuxContainerExecutor, with cgroups for CPU and"
        )
        reason += f" memory, and {HIERARCHY} to {parent}, and restart them"
    elif any(task.setting for task in tasks):
        reason = f"NodeManagers place containers elsewhere: set {HIERARCHY} to {parent}, and restart them"
    else:
        return Placement(new_tasks_follow=True, tasks=tuple(tasks))
    return Placement(new_tasks_follow=False, tasks=tuple(tasks), reason=reason)


def _place(
    container_id: str, found: Processes, known: Mapping[Process, tuple[str, ...]], parent: str, proc_root: Path
) -> tuple[TaskPlacement, bool]:
    """The placement of a container, and whether its NodeManager made its directory."""
    first = found.roots[0] if found.roots else found.members[0]
    own = known.get(first.process)
    if own is None:
        own = own_cgroups(container_id, read_cgroups(proc_root, first.pid))
    is_made = bool(own) and _is_made_by_launcher(container_id, first.parent_pid, proc_root)
    if own and all(cgroup.startswith(f"{parent}/") for cgroup in own):
        return TaskPlacement(task_id=container_id, cgroups=own), is_made
    if is_made:
        return TaskPlacement(task_id=container_id, cgroups=own, setting=HIERARCHY), is_made
    movable = tuple(stat.process for stat in found.members)
    return TaskPlacement(task_id=container_id, cgroups=own, movable=movable), is_made


def _is_made_by_launcher(container_id: str, launcher_pid: int, proc_root: Path) -> bool:
    """Whether its launcher was told to put it into a cgroup: `cgroups=FILE[%FILE]...`."""
    arguments = read_command(proc_root, launcher_pid)
    return any(argument.startswith(b"cgroups=") and container_id.encode() in argument for argument in arguments)
