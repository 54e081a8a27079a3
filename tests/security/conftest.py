"""Starts hostile programs as another user, and ends them with everything that they left."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from tests.security import as_user

PROGRAMS = Path(__file__).parent / "hostile"
OTHER_UID = 65_534
"""The user nobody, as most distributions number it."""

Attack = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="session")
def attacker_uid() -> int:
    """The user that runs hostile programs: another one where the tests run as root."""
    return OTHER_UID if os.geteuid() == 0 else os.getuid()


@pytest.fixture
def attack(attacker_uid: int) -> Iterator[Attack]:
    """`attack(program, *arguments, env={})` starts a program of `hostile`, with pipes for its input and output.

    It is ended with its session at the end of the test; a process that leaves the session has to end by itself.
    """
    started: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-I", as_user.__file__, str(attacker_uid), str(PROGRAMS / f"{program}.py"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env={"PATH": os.environ["PATH"], **(env or {})},
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
