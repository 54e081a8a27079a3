"""POST /ws/v1/cluster/nodes/ID/resource: a new size for one node, by REST. Nobody is asked for a right here."""

import json
import re
from http import HTTPStatus
from typing import Final

from fallow_yarn.embedded.http_server import Request, Response, failure, page
from fallow_yarn.embedded.scheduler import Scheduler, UnknownNode, Update
from fallow_yarn.http.loose_json import integer, member
from fallow_yarn.model.size import Size

PATH: Final = re.compile(r"/ws/v1/cluster/nodes/([^/]+)/resource")


def resize(scheduler: Scheduler, request: Request, now: float) -> Response:
    """The answer of an active ResourceManager."""
    match = PATH.fullmatch(request.path)
    if match is None:
        return failure(HTTPStatus.NOT_FOUND, "NotFoundException", f"HTTP 404 Not Found: {request.path}")
    try:
        body: object = json.loads(request.body)
    except ValueError:
        return failure(HTTPStatus.BAD_REQUEST, "BadRequestException", "the body is no JSON")
    memory_mb, vcores = integer(member(body, "resource", "memory")), integer(member(body, "resource", "vCores"))
    size = Size(memory_mb or 0, vcores or 0)
    timeout_ms = integer(member(body, "overCommitTimeout")) or 0  # left out, it ends at once
    update = Update(node_id=match[1], size=size, over_commit_timeout_ms=timeout_ms, custom={})
    before = scheduler.nodes[match[1]].capability if match[1] in scheduler.nodes else size
    try:
        scheduler.update([update], now)
    except UnknownNode as error:
        return failure(HTTPStatus.NOT_FOUND, "NotFoundException", f"nodeId, {error}, is not found")
    shown = size if scheduler.settings.release.answers_new_size else before
    return page({"resourceInfo": {"memory": shown.memory_mb, "vCores": shown.vcores}})
