"""Counts the functions whose docstrings open without a verb, by folder: `python -m generators.docstrings [FOLDER ...]`.

Properties and what returns a bool are left out. With folders below `teamchat`, print each of these docstrings in them.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parent.parent / "teamchat"
NO_VERBS = frozenset(
    """
    a an the
    all another any anybody anything both each either every everybody everything he her his it its itself neither no
    nobody none nothing one ones other others our ours she some somebody something such that their theirs them these
    they this those we you your
    how what whatever when where whether which who whose why
    first last next once second third twice zero one two three four five six seven eight nine ten many more most much
    about above across after against along among around as at before behind below beneath beside besides between beyond
    but by down during except for from if in inside into like near of off on onto out outside over past per since than
    through to toward towards under until up upon with within without
    """.split()  # noqa: SIM905 (a list would take a line a word)
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Opening(NamedTuple):
    """A function, or a method, with its docstring."""

    path: Path
    line: int
    name: str
    text: str

    @property
    def verb(self) -> bool:
        """Whether its first word may be a verb."""
        word = self.text.split(maxsplit=1)[0].strip("`'\"*(.,:;").lower() if self.text.strip() else ""
        return word not in NO_VERBS and not word[:1].isdigit()


def openings(folder: Path) -> Iterator[Opening]:
    """Find the docstrings of functions that are neither properties nor return a bool."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Function) and not _is_left_out(node):
                text = ast.get_docstring(node)
                if text is not None:
                    yield Opening(path, node.lineno, node.name, text)


def _is_left_out(node: Function) -> bool:
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    returns = ast.unparse(node.returns) if node.returns else ""
    return bool(decorators & {"property", "cached_property", "setter"}) or returns in ("bool", "TypeGuard", "TypeIs")


def main(folders: Sequence[str]) -> None:
    """Print the counts, or the docstrings without a verb in the folders."""
    for folder in folders:
        for opening in openings(PACKAGE / folder):
            if not opening.verb:
                print(
                    f"{opening.path.relative_to(PACKAGE)}:{opening.line} {opening.name}: {opening.text.splitlines()[0]}"
                )
    if folders:
        return
    counted, without = Counter[str](), Counter[str]()
    for opening in openings(PACKAGE):
        room = "/".join(opening.path.relative_to(PACKAGE).parts[:2][: len(opening.path.relative_to(PACKAGE).parts) - 1])
        counted[room] += 1
        without[room] += not opening.verb
    for room, number in counted.most_common():
        print(f"{without[room]:5} of {number:5}  {room}")
    print(f"{without.total():5} of {counted.total():5}  docstrings of functions open without a verb")
    print(f"{without.total() / counted.total():12.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
