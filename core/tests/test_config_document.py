import os
import socket
from pathlib import Path

import pytest

from fallow_core.config.document import LARGEST_FILE_BYTES, Document, read


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "one.yaml"


def good(file: Path, text: str) -> Document:
    file.write_text(text)
    document, problems = read(file)
    assert problems == []
    assert document is not None
    return document


def mistakes(file: Path, content: str | bytes) -> list[str]:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    _, problems = read(file)
    return [str(problem).removeprefix(str(file)) for problem in problems]


def test_values_become_plain_data(file: Path) -> None:
    document = good(file, "a: {b: [1, 0.5, true, null, ~]}\nc: 'yes'\nd:\n")
    assert document.data == {"a": {"b": [1, 0.5, True, None, None]}, "c": "yes", "d": None}


@pytest.mark.parametrize(
    "word", ["off", "no", "Yes", "1:30", "0x10", "007", "1_000", "2026-01-01", ".inf", "1e9", "0o17"]
)
def test_words_stay_words(file: Path, word: str) -> None:
    assert good(file, f"a: {word}").data == {"a": word}


def test_a_quoted_number_is_a_string(file: Path) -> None:
    assert good(file, "a: '5'\nb: \"true\"").data == {"a": "5", "b": "true"}


def test_a_byte_order_mark_is_no_part_of_the_first_key(file: Path) -> None:
    assert good(file, "\ufeffa: 1").data == {"a": 1}


def test_every_key_and_list_entry_has_its_line(file: Path) -> None:
    document = good(file, "# one\na:\n  b: 1\n  c:\n    - x\n    - y: 2\n")
    assert document.lines[("a",)] == 2
    assert document.lines[("a", "b")] == 3
    assert document.lines[("a", "c", 1)] == 6
    assert document.lines[("a", "c", 1, "y")] == 6


def test_a_key_that_is_not_there_has_the_line_of_what_is_around_it(file: Path) -> None:
    document = good(file, "a: 1\nb:\n  c: 1\n")
    assert document.line(("b", "missing", "deeper")) == 2
    assert document.line(("missing",)) == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", ": the file is empty"),
        ("# nothing\n", ": the file is empty"),
        ("- a\n- b\n", ":1: expected keys and values, such as kind: Fallow"),
        ("word\n", ":1: expected keys and values, such as kind: Fallow"),
        ("a: 1\n---\nb: 2\n", ":2: a second document; a file may have only one"),
        ("a: 1\nb: !!python/object:os.system x\n", ":2: b: the tag 'tag:yaml.org,2002:python/object:os.system'"),
        ("a: 1\nb: !secret x\n", ":2: b: the tag '!secret' is not supported"),
        ("a: 1\nb: *x\n", ":2: b: anchors (&) and aliases (*) are not supported"),
        ("a: 1\n? [x]\n: 2\n", ":2: a key under the top is not a string"),
        ("a: 1\n5: 2\n", ":2: the key '5' is not a string; quote it"),
        ("a: 1\nb\n", ":3: not YAML: "),
        ("a: [1,\n", ":2: not YAML: "),
        ("a: 1\nb: 'x\n", ":3: not YAML: "),
        ("a: 1\nb: c: d\n", ":2: not YAML: "),
        ("a: 1\n  b: 2\n", ":2: not YAML: "),
        ("%YAML 3.0\n---\na: 1\n", ":1: not YAML: "),
        ("a: 1\nb: \x07\n", ":2: a character that YAML does not allow: "),
        (b"a: 1\nb: \xff\n", ":2: byte 0xff is not UTF-8; save the file as UTF-8"),
        ("a: 1\n" + "x" * LARGEST_FILE_BYTES, ": larger than 1048576 bytes"),
        ("a: " + "[" * 100, ":1: nested deeper than 32 levels"),
        ("a: " + "[" * 100_000, ":1: n"),
    ],
)
def test_what_cannot_be_used_is_one_clear_error(file: Path, content: str | bytes, problem: str) -> None:
    found = mistakes(file, content)
    assert len(found) == 1
    assert found[0].startswith(problem)


def test_tabs_are_told_how_to_indent(file: Path) -> None:
    (found,) = mistakes(file, "a:\n\tb: 1\n")
    assert found.startswith(":2: not YAML: ")
    assert found.endswith("; indent with spaces, not with tabs")


def test_every_key_that_is_there_twice_is_told(file: Path) -> None:
    assert mistakes(file, "a: 1\nb: {c: 1, c: 2}\na:\n  d: 1\n") == [
        ":2: b.c: the key appears twice, first in line 2; remove one",
        ":3: a: the key appears twice, first in line 1; remove one",
    ]


def test_aliases_that_would_grow_without_bound_never_expand(file: Path) -> None:
    levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))
    found = mistakes(file, f"a0: &a0 x\n{levels}\n")
    assert len(found) == 1 + 29 * 10


def test_a_directory_a_pipe_a_socket_and_nothing_are_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        told = {path.name: read(path)[1][0].message for path in [tmp_path / "pipe", tmp_path / "socket", tmp_path]}
    assert told == {
        "pipe": "not a regular file",
        "socket": "not a regular file",
        tmp_path.name: "a directory, not a file",
    }
    assert read(tmp_path / "absent")[1][0].message == "cannot be read: No such file or directory"


def test_a_file_that_may_not_be_read_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("a: 1")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root may read any file
    assert read(file)[1][0].message == "cannot be read: Permission denied"


def test_control_characters_of_a_key_do_not_reach_the_terminal(file: Path) -> None:
    (found,) = mistakes(file, '"\\e[2J": 1\n"\\e[2J": 2\n')
    assert "\x1b" not in found
