"""Many new sizes in several calls, which are under way at the same time on one connection.

So the ResourceManager carries out a portion while the next one is being made, and while what became of the one before
is being told. Nothing more is tried here: what is not simply taken is sent again by `Manager.update`, which finds
unknown nodes and another ResourceManager.
"""

from collections.abc import Iterable, Iterator, Sequence

from fallow_yarn.errors import UnknownNodeError, YarnError
from fallow_yarn.ipc.connection import Finish
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import NodeUpdate, UpdateAnswer
from fallow_yarn.rm.manager import Manager


def update_in_portions(
    manager: Manager, portions: Iterable[Sequence[NodeUpdate]], deadline: Deadline
) -> Iterator[UpdateAnswer]:
    """Send each portion in a call of its own, and say of each update what became of it, as soon as that is known. The
    next portion is asked for when the one before has been sent.

    Raises a YarnError if that ended everything: nobody was refused or accepted then.
    """
    begun: list[tuple[Sequence[NodeUpdate], Finish]] = []
    left: list[NodeUpdate] = []
    is_one_taken = maybe_sent = False
    for updates in portions:
        if left or not updates:
            left += updates
            continue
        try:
            begun.append((updates, manager.begin(updates, deadline)))
        except YarnError as error:
            left += updates
            maybe_sent = error.maybe_sent
    for updates, finish in begun:
        try:
            finish()
        except YarnError as error:
            left += updates
            maybe_sent = maybe_sent or error.maybe_sent
        else:
            is_one_taken = True
            yield from (UpdateAnswer(node_id=update.node_id, error=None) for update in updates)
    if left:
        yield from _sent_again(manager, left, deadline, maybe_sent=maybe_sent, raises=not is_one_taken)


def _sent_again(
    manager: Manager, updates: Sequence[NodeUpdate], deadline: Deadline, *, maybe_sent: bool, raises: bool
) -> Iterator[UpdateAnswer]:
    try:
        answers = manager.update(updates, deadline)
    except YarnError as error:
        error.maybe_sent = error.maybe_sent or maybe_sent
        if raises:
            raise
        answers = tuple(UpdateAnswer(node_id=update.node_id, error=error) for update in updates)
    for answer in answers:
        if answer.error is not None and not isinstance(answer.error, UnknownNodeError):
            answer.error.maybe_sent = answer.error.maybe_sent or maybe_sent
    yield from answers
