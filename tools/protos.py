"""Makes the Python modules of the plugin's .proto files; `--check` fails if the ones in the tree are not those."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

SOURCE = Path(__file__).resolve().parent.parent / "plugins" / "yarn" / "src"
PROTOS = SOURCE / "fallow_yarn" / "ipc" / "protos"


def generate(target: Path) -> None:
    """Write the `_pb2.py` and `_pb2.pyi` files below `target`, which stands for the source folder."""
    files = [str(file.relative_to(SOURCE)) for file in sorted(PROTOS.glob("*.proto"))]
    arguments = ["protoc", f"-I{SOURCE}", f"--python_out={target}", f"--pyi_out={target}", *files]
    if protoc.main(arguments) != 0:
        sys.exit("protoc failed; see its message above")


def drift() -> list[str]:
    """What differs between the generated files in the tree and those that the .proto files give now."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        fresh = {file.name: file.read_bytes() for file in (Path(folder) / PROTOS.relative_to(SOURCE)).glob("*_pb2.py*")}
    kept = {file.name: file.read_bytes() for file in PROTOS.glob("*_pb2.py*")}
    return sorted(name for name in fresh.keys() | kept.keys() if fresh.get(name) != kept.get(name))


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate, or with `--check` compare; the exit code is 1 when something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the files in the tree are stale")
    if not parser.parse_args(arguments).check:
        generate(SOURCE)
        return 0
    stale = drift()
    if stale:
        print(f"not what the .proto files give: {', '.join(stale)}; run python tools/protos.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
