"""Every test that a page of docs/contributing names is there; a row names one or says why not."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.program import ROOT

NAMED = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")


def rows(page: str) -> list[list[str]]:
    """The rows of the tables whose last column is called `test`."""
    found, inside = [], False
    for line in (ROOT / "docs" / "contributing" / page).read_text(encoding="utf-8").splitlines():
        inside = line.startswith("|") and (inside or line.endswith("| test |"))
        if inside and not line.endswith(("| test |", "---|")):
            found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


@cache
def names_in(path: str) -> frozenset[str]:
    """`test_x` and `TestY::test_x` of a file, which is not imported."""
    module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    classes = ((f"{node.name}::", node.body) for node in module.body if isinstance(node, ast.ClassDef))
    return frozenset(
        f"{prefix}{node.name}"
        for prefix, body in (("", module.body), *classes)
        for node in body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


@pytest.mark.parametrize("row", [*rows("field.md"), *rows("context.md")], ids=lambda row: row[0][:40])
def test_a_row_names_tests_that_are_there_or_says_why_there_is_none(row: list[str]) -> None:
    *_, done, tests = row
    missing = [f"{path}::{name}" for path, name in NAMED.findall(tests) if name not in names_in(path)]
    assert missing == []
    assert len(NAMED.findall(tests)) == tests.count("::test_")
    assert tests or done.startswith(("out of scope: ", "not covered yet"))


@pytest.mark.parametrize(("page", "at_least"), [("field.md", 30), ("context.md", 20)])
def test_the_page_has_rows_of_every_part(page: str, at_least: int) -> None:
    assert len(rows(page)) > at_least
