import pytest

from fallow_core.agent.throttling.memberships import Memberships, due_at
from fallow_core.node.cgroups.files import Files
from fallow_hookspecs import Process

ONE, OTHER = Process(7, 1), Process(8, 1)


class Fake(Files):
    """What /proc says of each process; `read_of` counts."""

    def __init__(self) -> None:
        self.texts = {7: "1:cpu:/a\n", 8: "1:cpu:/b\n"}
        self.read_of: list[int] = []

    def read(self, path: str) -> str:
        pid = int(path.split("/")[2])
        self.read_of.append(pid)
        if pid not in self.texts:
            raise FileNotFoundError(path)
        return self.texts[pid]


@pytest.fixture
def fake() -> Fake:
    return Fake()


def test_what_was_read_is_read_again_the_more_rarely_the_longer_it_is_so(fake: Fake) -> None:
    found, at = Memberships(fake, "/proc"), []
    for second in range(131):
        before = len(fake.read_of)
        found.text(ONE, float(second))
        at += [second] * (len(fake.read_of) - before)
    assert at == [0, 10, 20, 40, 70, 100, 130]


def test_what_has_changed_is_soon_read_again(fake: Fake) -> None:
    found = Memberships(fake, "/proc")
    for second in (0, 10, 20, 40):
        first = found.text(ONE, second)
    fake.texts[7] = "1:cpu:/c\n"
    assert found.text(ONE, 69.0) is first
    assert found.text(ONE, 70.0) == "1:cpu:/c\n"
    assert due_at(70.0, 70.0) == 80.0


def test_what_was_moved_is_read_at_once_and_nothing_else(fake: Fake) -> None:
    found = Memberships(fake, "/proc")
    for process in (ONE, OTHER):
        found.text(process, 0.0)
    found.reread([OTHER])
    assert [found.text(process, 1.0) for process in (ONE, OTHER)] == ["1:cpu:/a\n", "1:cpu:/b\n"]
    assert fake.read_of == [7, 8, 8]


def test_one_that_has_ended_is_told_and_what_is_asked_no_more_is_forgotten(fake: Fake) -> None:
    found = Memberships(fake, "/proc")
    first = found.text(ONE, 0.0)
    found.text(OTHER, 0.0)
    found.forget_except({ONE})
    del fake.texts[8]
    with pytest.raises(FileNotFoundError):
        found.text(OTHER, 1.0)
    assert found.text(ONE, 1.0) is first
