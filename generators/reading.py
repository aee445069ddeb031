"""Counts what makes a reader search: `python -m generators.reading`; `--list` names each case."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE, TESTS = ROOT / "teamchat", ROOT / "tests"
VAGUE = ("found", "one", "kept", "told")
"""Names of locals that do not say what they hold."""
LONGEST = 750
TESTED = ("core", "runners", "assemblers", "cli/output")
"""Folders of tests whose files are named after a module, a folder, or a row of `ACTS`."""
ACTS = TESTS / "acts.md"
"""What a user does where several rooms meet, with the test file that does it."""


def modules(folder: Path) -> dict[Path, str]:
    """The text of each module below a folder."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}


def glued(texts: Mapping[Path, str]) -> Iterator[str]:
    """Comments that stand alone between the definitions of a module, as the head of another one does."""
    for path, text in texts.items():
        body = ast.parse(text).body
        imported = [node.end_lineno or 0 for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        lines = ["", *text.splitlines(), ""]
        inside = {line for node in body for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
        for number in range(max(imported, default=1) + 1, len(lines) - 1):
            if not lines[number].startswith("#") or number in inside or lines[number - 1].startswith("#"):
                continue
            end = next(last for last in range(number, len(lines)) if not lines[last].startswith("#"))
            if not lines[number - 1].strip() and not lines[end].strip():
                yield f"{path.relative_to(ROOT)}:{number}: {lines[number]}"


def twice(texts: Mapping[Path, str]) -> dict[str, list[str]]:
    """The modules of each public class whose name several modules define."""
    where = defaultdict[str, list[str]](list)
    for path, text in texts.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(str(path.relative_to(PACKAGE)))
    return {name: paths for name, paths in sorted(where.items()) if len(paths) > 1}


def vague(texts: Mapping[Path, str]) -> Iterator[str]:
    """Assignments to locals with such a name, the targets of loops among them."""
    for path, text in texts.items():
        tree = ast.parse(text)
        locals_ = {
            (name.lineno, name.col_offset): name.id
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for name in ast.walk(function)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store) and name.id in VAGUE
        }
        for (line, _), name in sorted(locals_.items()):
            yield f"{path.relative_to(ROOT)}:{line}: {name}"


def nameless() -> Iterator[str]:
    """Test files without a module or folder of their name, or a row of the list."""
    acts = set(re.findall(r"`(tests/[^`]+\.py)`", ACTS.read_text(encoding="utf-8"))) if ACTS.exists() else set[str]()
    for room in TESTED:
        for path in sorted((TESTS / room).rglob("test_*.py")):
            there = PACKAGE / path.relative_to(TESTS).parent
            name = path.stem.removeprefix("test_")
            if not ((there / f"{name}.py").exists() or (there / name).is_dir() or there.with_suffix(".py").exists()):
                written = str(path.relative_to(ROOT))
                if written not in acts:
                    yield written


def main() -> None:
    texts = modules(PACKAGE)
    assigned = list(vague(texts))
    lists = {
        "comments that stand as the head of a module inside of another": list(glued(texts)),
        "public class names that several modules define": [
            f"{name}: {', '.join(paths)}" for name, paths in twice(texts).items()
        ],
        f"locals named {', '.join(VAGUE)}": assigned,
        "test files named after no module, folder or act of a user": list(nameless()),
        f"modules above {LONGEST} lines": [
            f"{path.relative_to(ROOT)}: {len(text.splitlines())}"
            for path, text in texts.items()
            if len(text.splitlines()) > LONGEST
        ],
    }
    for what, cases in lists.items():
        print(f"{len(cases):6,} {what}")
        if "--list" in sys.argv:
            print(*(f"         {case}" for case in cases), sep="\n")
    print(f"{len(texts):6,} modules")
    print(f"{sum(len(text.splitlines()) for text in texts.values()):6,} lines")


if __name__ == "__main__":
    main()
