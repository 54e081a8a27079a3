"""Makes the Python modules of the .proto files; `--check` fails if the ones in the tree are not those."""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (
    (ROOT / "hookspecs" / "src", Path("fallow_hookspecs/copilot/v0")),
    (ROOT / "plugins" / "yarn" / "src", Path("fallow_yarn/ipc/protos")),
)
"""Source folders, and where the .proto files are below them."""


def generate(source: Path, protos: Path, target: Path) -> None:
    """Write the `_pb2.py` and `_pb2.pyi` files below `target`, which stands for the source folder."""
    files = [str(file.relative_to(source)) for file in sorted((source / protos).glob("*.proto"))]
    # Those that Google's own files need, such as any.proto, come with the compiler.
    google = Path(protoc.__file__).parent / "_proto"
    arguments = ["protoc", f"-I{source}", f"-I{google}", f"--python_out={target}", f"--pyi_out={target}", *files]
    if protoc.main(arguments) != 0:
        sys.exit("protoc failed; see its message above")


def drift(source: Path, protos: Path) -> Iterator[str]:
    """What differs between the generated files in the tree and those that the .proto files give now."""
    with tempfile.TemporaryDirectory() as folder:
        generate(source, protos, Path(folder))
        fresh = {file.name: file.read_bytes() for file in (Path(folder) / protos).glob("*_pb2.py*")}
    kept = {file.name: file.read_bytes() for file in (source / protos).glob("*_pb2.py*")}
    return (str(protos / name) for name in sorted(fresh.keys() | kept.keys()) if fresh.get(name) != kept.get(name))


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate, or with `--check` compare; the exit code is 1 when something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the files in the tree are stale")
    if not parser.parse_args(arguments).check:
        for source, protos in FOLDERS:
            generate(source, protos, source)
        return 0
    stale = [name for source, protos in FOLDERS for name in drift(source, protos)]
    if stale:
        print(f"not what the .proto files give: {', '.join(stale)}; run python tools/protos.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
