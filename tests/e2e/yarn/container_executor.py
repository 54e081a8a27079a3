#!/usr/bin/env python3
"""In place of YARN's native container-executor: it puts containers into control groups, and changes no user.

A NodeManager calls it as `PROGRAM USER YARN_USER NUMBER ARGUMENT...`, or with `--checksetup` when it starts.
"""

import os
import shutil
import sys
from pathlib import Path

INITIALIZE, LAUNCH, SIGNAL, DELETE, LIST = "0", "1", "2", "3", "5"
NO_SUCH_GROUP = 9


def main(arguments: list[str]) -> int:
    if arguments[0].startswith("--"):
        return 0
    _, user, number, *rest = arguments
    print(f"main : command provided {number}", flush=True)
    if number == INITIALIZE:
        return initialize(user, rest)
    if number == LAUNCH:
        return launch(user, rest)
    if number == SIGNAL:
        return end(int(rest[0]), int(rest[1]))
    if number == DELETE:
        delete(rest)
    elif number == LIST:
        print("\n".join(path.name for path in Path(rest[0]).iterdir()))
    return 0


def folders(user: str, app: str, local: str, logs: str) -> list[Path]:
    """The application's own in each local folder; its log folders are made as well."""
    own = [Path(folder) / "usercache" / user / "appcache" / app for folder in local.split("%")]
    for folder in (*own, *(Path(log) / app for log in logs.split("%"))):
        folder.mkdir(parents=True, exist_ok=True)
    for folder in own:
        (folder.parent.parent / "filecache").mkdir(exist_ok=True)
    return own


def initialize(user: str, arguments: list[str]) -> int:
    app, _, tokens, local, logs, *localizer = arguments
    home = folders(user, app, local, logs)[0]
    shutil.copy(tokens, home)
    os.chdir(home)
    os.execvp(localizer[0], localizer)


def launch(user: str, arguments: list[str]) -> int:
    app, container, work, script, tokens, *rest = arguments
    if rest[0] in ("--http", "--https"):
        rest = rest[3 if rest[0] == "--https" else 1 :]
    pid_file, local, logs, cgroups = rest[:4]
    child = os.fork()
    if child == 0:
        os.setsid()
        whole(Path(pid_file), f"{os.getpid()}")
        for file in cgroups.partition("=")[2].split("%"):
            if file != "none":
                Path(file).write_text(f"{os.getpid()}")
        for folder in folders(user, app, local, logs):
            (folder / container).mkdir(exist_ok=True)
        for log in logs.split("%"):
            (Path(log) / app / container).mkdir(exist_ok=True)
        Path(work).mkdir(parents=True, exist_ok=True)
        os.chdir(work)
        shutil.copy(tokens, "container_tokens")
        shutil.copy(script, "launch_container.sh")
        Path("launch_container.sh").chmod(0o700)
        os.execve("./launch_container.sh", ["launch_container.sh"], {"PATH": os.defpath})
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 128 - status if status < 0 else status
    whole(Path(f"{pid_file}.exitcode"), f"{code}")
    return code


def whole(file: Path, text: str) -> None:
    """A reader sees all of it or nothing."""
    part = file.with_name(f"{file.name}.tmp")
    part.write_text(text)
    part.replace(file)


def end(group: int, number: int) -> int:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return NO_SUCH_GROUP
    return 0


def delete(arguments: list[str]) -> None:
    name, *bases = arguments
    for path in [Path(base, name) for base in bases] or [Path(name)]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
