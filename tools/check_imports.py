"""Import every module of an installed distribution, to see that the wheel has them and their dependencies."""

import argparse
import importlib
import sys
from pathlib import Path


def module_names(source: Path) -> list[str]:
    """Return the dotted names of the modules under a `src` folder, without `__main__`: importing that runs it."""
    names = []
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if parts[-1] != "__main__":
            names.append(".".join(parts))
    return names


def check(folder: Path, only: list[str] | None, skipped: list[str]) -> list[str]:
    """Import the modules of `folder/src` and return what is wrong.

    `only` lists the packages that may be imported beside the distribution itself and the standard library, `skipped`
    the modules and packages that need an extra of the distribution.
    """
    source = (folder / "src").resolve()
    names = [name for name in module_names(source) if not any(f"{name}.".startswith(f"{each}.") for each in skipped)]
    if not names:
        return [f"no module found under {source}"]
    before = set(sys.modules)
    errors = []
    for name in names:
        try:
            module = importlib.import_module(name)
        except Exception as error:
            errors.append(f"{name}: {type(error).__name__}: {error}")
            continue
        if Path(module.__file__ or "").is_relative_to(source):
            errors.append(f"{name}: comes from the source folder, expected an installed wheel")
    own = names[0].partition(".")[0]
    typed = sys.modules[own].__file__ if own in sys.modules else None
    if typed and not Path(typed).with_name("py.typed").exists():
        errors.append(f"{own}: py.typed is not installed")
    if only is not None:
        brought_in = {name.partition(".")[0] for name in set(sys.modules) - before}
        foreign = brought_in - set(sys.stdlib_module_names) - {own, *only}
        errors.extend(f"{own}: brings in {name}" for name in sorted(foreign))
    return errors


def main() -> int:
    """Print the errors, or how many modules were imported."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the distribution, e.g. core")
    parser.add_argument("--only", action="append", help="a package that may be imported; all may without this")
    parser.add_argument("--skip", action="append", default=[], help="a module or package that needs an extra")
    arguments = parser.parse_args()
    errors = check(arguments.folder, arguments.only, arguments.skip)
    for error in errors:
        print(error)
    if not errors:
        print(f"{arguments.folder}: its modules import")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
