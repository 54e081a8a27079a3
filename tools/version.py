"""The version of all distributions, from the file VERSION.

    python tools/version.py            write it into every pyproject.toml
    python tools/version.py --check    only say where another one is

Before 1.0 a minor version of fallow-hookspecs may change the contract: the others need one of the same minor version.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = ("hookspecs", "core", "plugins/yarn", "docs/examples/local_queue")


def stated(text: str, version: str) -> str:
    """The text of a pyproject.toml with this version, and with the range of fallow-hookspecs that fits it."""
    major, minor, _ = version.split(".")
    text = re.sub(r'^version = ".*"$', f'version = "{version}"', text, count=1, flags=re.MULTILINE)
    return re.sub(
        r"(fallow-hookspecs(?:\[\w+\])?)>=[\d.]+,<[\d.]+", rf"\1>={major}.{minor},<{major}.{int(minor) + 1}", text
    )


def main(*options: str) -> int:
    """Write or check; the number of files with another version."""
    version = (ROOT / "VERSION").read_text().strip()
    files = [ROOT / name / "pyproject.toml" for name in DISTRIBUTIONS]
    wrong = [file for file in files if stated(file.read_text(), version) != file.read_text()]
    for file in wrong:
        if "--check" in options:
            print(f"{file.relative_to(ROOT)} is not that of version {version}: run python tools/version.py")
        else:
            file.write_text(stated(file.read_text(), version))
            print(f"wrote {file.relative_to(ROOT)}")
    return len(wrong) if "--check" in options else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
