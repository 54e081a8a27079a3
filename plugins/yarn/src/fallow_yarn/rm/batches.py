"""Sends many new sizes in several calls at the same time on one connection.

The ResourceManager carries out one batch while the next is prepared and the results of the one before are reported. A
batch that fails is sent again with `Manager.update`, which handles unknown nodes and a failover.
"""

from collections.abc import Iterable, Iterator, Sequence

from fallow_yarn.errors import UnknownNodeError, YarnError
from fallow_yarn.ipc.connection import Finish
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import NodeUpdate, UpdateAnswer
from fallow_yarn.rm.manager import Manager


def update_in_batches(
    manager: Manager, batches: Iterable[Sequence[NodeUpdate]], deadline: Deadline
) -> Iterator[UpdateAnswer]:
    """Send each batch in a call of its own, and yield the result of each update as soon as it is known. The next batch
    is requested when the one before has been sent.

    Raises a YarnError if no update was accepted or refused before it.
    """
    begun: list[tuple[Sequence[NodeUpdate], Finish]] = []
    left: list[NodeUpdate] = []
    is_one_accepted = maybe_sent = False
    for updates in batches:
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
            is_one_accepted = True
            yield from (UpdateAnswer(node_id=update.node_id, error=None) for update in updates)
    if left:
        yield from _sent_again(manager, left, deadline, maybe_sent=maybe_sent, raises=not is_one_accepted)


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
