import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from plugins.yarn.tests.yarn_fakes import ETL

from fallow_yarn.errors import ProtocolError, RemoteError, StandbyError
from fallow_yarn.http.web import Web
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.rm.applications import (
    PAGE,
    WITH_REQUESTS,
    WITHOUT,
    Request,
    RunningApplication,
    read_applications,
)
from fallow_yarn.rm.labels import read_labels

LATER = Deadline(0.0, clock=lambda: 0.0)
MASTER = "container_1700000000000_0001_02_000001"


class Pages(Web):
    """A ResourceManager with these pages; an exception is raised."""

    def __init__(self, pages: Mapping[str, object]) -> None:
        super().__init__(Endpoint(host="rm1", port=8088, setting="spec.web", purpose="p", hadoop_key="k"), "u")
        self.pages = pages
        self.asked: list[str] = []

    def page(self, path: str, deadline: Deadline) -> bytes:
        self.asked.append(path)
        answer = self.pages[path]
        if isinstance(answer, Exception):
            raise answer
        return json.dumps(answer).encode()


def entry(**more: object) -> dict[str, object]:
    """An application as a ResourceManager writes it."""
    return {
        "id": "application_1700000000000_0001",
        "user": "al",
        "name": "etl",
        "queue": "root.batch",
        "state": "RUNNING",
        "progress": 25.0,
        "applicationType": "SPARK",
        "priority": 3,
        "amContainerLogs": f"http://worker-1:8042/node/containerlogs/{MASTER}/al",
        "runningContainers": 4,
    } | more


def read(*entries: object) -> tuple[RunningApplication, ...]:
    return read_applications(Pages({PAGE + WITHOUT: {"apps": {"app": list(entries)}}}), LATER)


def test_an_application_has_its_master_and_its_share_of_progress() -> None:
    assert read(entry()) == (replace(ETL, id="application_1700000000000_0001", master=MASTER),)


@pytest.mark.parametrize(
    ("progress", "expected"),
    [(0, 0.0), (100.0, 1.0), (250.0, 1.0), (-1, 0.0), ("50", None), (None, None), (True, None), (float("nan"), None)],
)
def test_progress_is_a_share_or_not_known(progress: object, expected: float | None) -> None:
    (application,) = read(entry(progress=progress))
    assert application.progress == expected


@pytest.mark.parametrize(("priority", "expected"), [(-1, 0), ("7", 7), (None, 0), (0, 0)])
def test_a_priority_that_was_not_given_is_zero(priority: object, expected: int) -> None:
    (application,) = read(entry(priority=priority))
    assert application.priority == expected


@pytest.mark.parametrize("logs", ["", None, "N/A", "http://worker-1:8042/node/containerlogs/container_x/al", 5])
def test_a_master_that_is_not_shown_is_not_known(logs: object) -> None:
    (application,) = read(entry(amContainerLogs=logs))
    assert application.master is None


def test_an_application_that_waits_for_its_first_container_is_left_out() -> None:
    waiting = entry(state="ACCEPTED", runningContainers=0, amContainerLogs="")
    starting = entry(id="application_1700000000000_0002", state="ACCEPTED", runningContainers=0)
    hidden = entry(id="application_1700000000000_0003", amContainerLogs=None)
    del hidden["runningContainers"]
    assert [each.id[-4:] for each in read(waiting, starting, hidden)] == ["0002", "0003"]


def request(
    mb: object = 512, vcores: object = 1, count: object = 2, name: object = "*", kind: str = "GUARANTEED"
) -> dict[str, object]:
    """What an application waits for, as a ResourceManager writes it."""
    return {
        "priority": 1,
        "resourceName": name,
        "capability": {"memory": mb, "vCores": vcores, "resourceInformations": {}},
        "numContainers": count,
        "executionTypeRequest": {"executionType": kind, "enforceExecutionType": False},
    }


def waits(*requests: object) -> tuple[Request, ...]:
    page = {"apps": {"app": [entry(resourceRequests=list(requests))]}}
    (application,) = read_applications(Pages({PAGE + WITH_REQUESTS: page}), LATER, requests=True)
    return application.requests


def test_what_an_application_waits_for_is_read_where_it_is_asked_for() -> None:
    assert waits(request(512, 1, 2), request("4096", 8, "1")) == (
        Request(size=Size(512, 1), containers=2),
        Request(size=Size(4096, 8), containers=1),
    )


def test_wishes_about_the_place_are_a_part_of_what_is_waited_for_anywhere() -> None:
    assert waits(request(), request(name="worker-1"), request(name="/rack-1")) == (
        Request(size=Size(512, 1), containers=2),
    )
    assert waits(request(name=None)) == (Request(size=Size(512, 1), containers=2),)


@pytest.mark.parametrize(
    "bad", [request(count=0), request(count=-1), request(mb=None), request(kind="OPPORTUNISTIC"), 7]
)
def test_what_needs_no_room_of_the_scheduler_does_not_wait_for_it(bad: object) -> None:
    assert waits(bad, request(1024, 1, 1)) == (Request(size=Size(1024, 1), containers=1),)


def test_with_requests_an_application_without_containers_is_there_too() -> None:
    waiting = entry(state="ACCEPTED", runningContainers=0, amContainerLogs="", resourceRequests=[request()])
    web = Pages({PAGE + WITH_REQUESTS: {"apps": {"app": [waiting, entry()]}}})
    found = read_applications(web, LATER, requests=True)
    assert [(each.has_containers, len(each.requests)) for each in found] == [(False, 1), (True, 0)]


@pytest.mark.parametrize("bad", [None, 7, "x", [], {}, entry(id=None), entry(id="")])
def test_an_entry_that_makes_no_sense_spoils_no_other(bad: object) -> None:
    assert len(read(bad, entry())) == 1


@pytest.mark.parametrize("body", [{}, {"apps": None}, {"apps": {}}, {"apps": ""}])
def test_no_application_is_written_in_several_ways(body: object) -> None:
    assert read_applications(Pages({PAGE + WITHOUT: body}), LATER) == ()


def test_one_application_may_be_written_without_a_list() -> None:
    assert len(read_applications(Pages({PAGE + WITHOUT: {"apps": {"app": entry()}}}), LATER)) == 1


def test_all_applications_are_one_page_without_its_large_parts() -> None:
    web = Pages({PAGE + WITHOUT: {"apps": {"app": [entry()] * 500}}})
    assert len(read_applications(web, LATER)) == 500
    assert web.asked == [PAGE + WITHOUT]


def test_a_release_that_does_not_know_the_parts_is_asked_for_all() -> None:
    refusal = RemoteError("400", kind="HTTP 400")
    web = Pages({PAGE + WITHOUT: refusal, PAGE: {"apps": {"app": [entry()]}}})
    assert len(read_applications(web, LATER)) == 1


@pytest.mark.parametrize("error", [RemoteError("500", kind="HTTP 500"), StandbyError("a standby", kind="HTTP 307")])
def test_another_refusal_is_an_error(error: RemoteError) -> None:
    with pytest.raises(type(error)):
        read_applications(Pages({PAGE + WITHOUT: error}), LATER)


def test_what_is_no_object_is_not_the_answer_of_a_resource_manager() -> None:
    with pytest.raises(ProtocolError, match="is it a ResourceManager"):
        read_applications(Pages({PAGE + WITHOUT: []}), LATER)


def test_a_request_has_the_partition_that_the_scheduler_resolved() -> None:
    requests = [request(), {**request(), "nodeLabelExpression": "gpu"}, {**request(), "nodeLabelExpression": ""}]
    pages = Pages({PAGE + WITH_REQUESTS: {"apps": {"app": [entry(resourceRequests=requests)]}}})
    (application,) = read_applications(pages, LATER, requests=True)
    assert [each.label for each in application.requests] == ["", "gpu", ""]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({}, {}),
        ({"nodeLabelInfo": {"name": "gpu", "exclusivity": "true"}}, {"gpu": True}),
        (
            {"nodeLabelInfo": [{"name": "a", "exclusivity": "false"}, {"name": "b", "exclusivity": False}]},
            {"a": False, "b": False},
        ),
    ],
)
def test_labels_are_exclusive_or_not(answer: object, expected: dict[str, bool]) -> None:
    assert read_labels(Pages({"/ws/v1/cluster/get-node-labels": answer}), LATER) == expected
