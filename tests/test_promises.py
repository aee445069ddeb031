"""Each promise of `docs/security.md` names the tests that show it, in `docs/contributing/promises.md`."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.program import ROOT

PAGE = ROOT / "docs" / "security.md"
TABLE = ROOT / "docs" / "contributing" / "promises.md"
WORDS = re.compile(r"\b(may|cannot|never|always|only)\b", re.IGNORECASE)
LEFT_OUT = re.compile(r"^```.*?^```$|^<!-- made by.*?^<!-- end of.*?-->$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
SENTENCE_END = re.compile(r"(?<=[.?!;])(?:\*\*)?\s+")
LIMIT = "a limit"


def blocks() -> list[str]:
    """The paragraphs, list items and cells of the page, each on one line."""
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n", LEFT_OUT.sub("", PAGE.read_text(encoding="utf-8"))):
        begins = True
        for line in paragraph.splitlines():
            if line.startswith("|"):
                found += [cell.strip() for cell in line.strip("|").split("|")]
            elif begins or line.startswith("- "):
                found.append(line.removeprefix("- "))
            else:
                found[-1] += f" {line.strip()}"
            begins = line.startswith("|")
    return found


def promises() -> list[str]:
    """The sentences with such a word, without the targets of links."""
    sentences = (LINK.sub(r"\1", sentence) for block in blocks() for sentence in SENTENCE_END.split(block))
    return list(dict.fromkeys(sentence for sentence in sentences if WORDS.search(CODE.sub("", sentence))))


def rows() -> dict[str, str]:
    """What shows each sentence of the table: its rows are the lines between its head and the end."""
    lines = TABLE.read_text(encoding="utf-8").partition("| --- | --- |\n")[2].splitlines()
    cells = (line.strip("| ").rsplit(" | ", 1) for line in lines if line.startswith("|"))
    return {sentence.strip(): shown.strip() for sentence, shown in cells}


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_promise_has_a_row() -> None:
    missing = [sentence for sentence in promises() if sentence not in rows()]
    assert not missing, f"add a row for each to {TABLE.relative_to(ROOT)}:\n" + "\n".join(
        f"| {sentence} | tests/FILE.py::TEST |" for sentence in missing
    )


def test_every_row_is_a_promise_of_the_page() -> None:
    gone = [sentence for sentence in rows() if sentence not in promises()]
    assert not gone, f"{PAGE.relative_to(ROOT)} has no such sentence any more; remove its row:\n" + "\n".join(gone)


@pytest.mark.parametrize("shown", sorted(set(rows().values()) - {LIMIT}))
def test_a_named_test_is_there(shown: str) -> None:
    for named in shown.split(", "):
        file, _, test = named.strip("`").partition("::")
        assert test in functions(file), f"there is no test {named}"
