"""Terminates containers through the ResourceManager, where their processes may not be signalled from here."""

from collections.abc import Mapping

from fallow_hookspecs import KillAnswer, KillResult
from fallow_yarn.errors import RemoteError, YarnError
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.manager import Manager


def terminate_by_manager(
    manager: Manager, answers: Mapping[str, KillAnswer], deadline: Deadline, *, force: bool
) -> dict[str, KillAnswer]:
    """The answers, with those that say "no access" replaced by the ResourceManager's result.

    Once the ResourceManager cannot be reached, it is not asked again. A container that it does not know remains "no
    access": after its start it knows no container until the NodeManagers have reported theirs.
    """
    ended = dict(answers)
    for task_id, answer in answers.items():
        container = ContainerId.parse(task_id)
        if answer.result is not KillResult.NO_ACCESS or container is None:
            continue
        try:
            manager.signal(container, deadline, force=force)
        except YarnError as error:
            reason = f"{answer.reason}; " if answer.reason else ""
            reason += f"the ResourceManager does not terminate it either: {error}"
            ended[task_id] = KillAnswer(result=KillResult.NO_ACCESS, reason=reason)
            if not isinstance(error, RemoteError):
                break
        else:
            ended[task_id] = KillAnswer(result=KillResult.TERMINATING)
    return ended
