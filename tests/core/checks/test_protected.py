"""Which paths the patterns and the sets of `protect` name."""

from __future__ import annotations

import pytest

from teamchat.core.check import PROTECTED_SETS
from teamchat.core.checks.protected import SETS, like_tests, protected

OF_PYTEST = [
    "conftest.py", "sub/conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml",
    "setup.cfg", "tox.ini", "sitecustomize.py", "usercustomize.py", "evil.pth", "pytest.py", "pytest/__init__.py",
    "_pytest/main.py", "pluggy.py", "deep/pytest.so", "x.dist-info/entry_points.txt", "x.egg-info/entry_points.txt",
]  # fmt: skip
OF_NPM = [
    "package.json", "app/package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lockb", ".npmrc",
    "jest.config.js", "jest.config.mjs", "vitest.config.mts", "vite.config.ts", ".mocharc.yml", ".mocharc.cjs",
    "babel.config.json", "tsconfig.json", "__mocks__/fs.js", "app/node_modules/mocha/index.js",
]  # fmt: skip
OTHERS = ["parser.py", "src/app/types.py", "py.typed", "tests/test_a.py", "src/index.js", "docs/pytest.md", "a/json.py"]


@pytest.mark.parametrize(("name", "paths"), [("pytest", OF_PYTEST), ("npm", OF_NPM), ("make", ["Makefile", "a/b.mk"])])
def test_a_set_names_what_configures_the_runner_and_nothing_else(name: str, paths: list[str]) -> None:
    assert protected([name], "", [*paths, *OTHERS]) == set(paths)


def test_a_module_of_pythons_own_counts_where_it_is_new_and_comes_before_it() -> None:
    paths = ["json.py", "src/argparse.py", "typing/__init__.py", "a/json.py", "typing/notes.txt", "test/__init__.py"]
    found = {"json.py", "src/argparse.py", "typing/__init__.py"}
    assert protected(["pytest"], "", paths, paths) == found
    assert protected(["pytest"], "", paths) == set()
    assert protected(["!json.py", "pytest"], "", paths, paths) == found - {"json.py"}


def test_patterns_are_those_of_gitignore_in_the_folder_of_the_check() -> None:
    paths = ["tests/a.py", "app/tests/a.py", "app/tests/out/a.xml", "app/x/tests/a.py", "app/names with space.py"]
    assert protected(["/tests/"], "app", paths) == {"app/tests/a.py", "app/tests/out/a.xml"}
    assert protected(["tests/**", "!tests/out/", "!tests/out/**"], "app", paths) == {"app/tests/a.py"}
    assert protected(["names with space.py"], "app", paths) == {"app/names with space.py"}
    assert protected(["tests/**"], "", paths) == {"tests/a.py"}


@pytest.mark.parametrize("path", [":x", "-x", "#x", " x", "é", "x\ny", "a\udc80b", "a/:(top)b"])
def test_any_name_of_a_file_is_told_apart(path: str) -> None:
    assert protected(["*", "!other"], "", [path, "other"]) == {path}


def test_a_pattern_takes_a_file_out_of_a_set() -> None:
    assert protected(["pytest", "!pyproject.toml"], "", ["pyproject.toml", "tox.ini"]) == {"tox.ini"}


def test_nothing_is_protected_by_nothing() -> None:
    assert protected([], "", OF_PYTEST) == set()
    assert protected(["pytest"], "", []) == set()


def test_the_sets_of_the_team_file_are_those_that_there_are() -> None:
    assert tuple(SETS) == PROTECTED_SETS


def test_what_looks_like_tests_is_guessed_by_names() -> None:
    tests = {"tests/a.py", "x/test_a.py", "a_test.go", "b.spec.ts", "conftest.py"}
    assert like_tests([*tests, "parser.py", "src/latest.py"]) == tests
