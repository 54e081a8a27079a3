"""Runs a Python program as another user: `as_user.py UID PROGRAM ARGUMENT…`.

The user may not be able to read the interpreter's own modules, so what the program imports is imported before.
"""

import ast
import importlib
import os
import sys


def main() -> None:
    """Become the user, then run the program; its `sys.argv` starts with the program."""
    uid, path = int(sys.argv[1]), sys.argv[2]
    with open(path, "rb") as file:  # noqa: PTH123 - as few modules as possible
        tree = ast.parse(file.read(), path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                importlib.import_module(each.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            importlib.import_module(node.module)
    "localhost".encode("idna")  # loads what look-ups of names need
    if uid != os.getuid():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    sys.argv = sys.argv[2:]
    exec(compile(tree, path, "exec"), {"__name__": "__main__", "__file__": path})


if __name__ == "__main__":
    main()
