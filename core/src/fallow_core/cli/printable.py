"""Text for a terminal: it may quote a file, a peer or a task, and must do nothing to the terminal."""


def printable(line: str) -> str:
    """The line without what would do something to a terminal."""
    return "".join(character if character.isprintable() else "�" for character in line)


def printable_lines(text: str) -> str:
    """The text with its line ends, and otherwise as `printable`."""
    return "\n".join(map(printable, text.split("\n")))
