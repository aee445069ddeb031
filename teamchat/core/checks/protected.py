"""The files that a check protects: patterns of gitignore, and sets of files that configure a test runner or precede it.

git itself tells which paths the patterns name. A path is relative to the top of the work tree.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from teamchat.core.checkpoint.ignored import named_by

_PYTHON_MODULES = ("pytest", "_pytest", "pluggy", "iniconfig")
_IMPORTED_BY_PYTEST = ("py", "packaging", "pygments", "exceptiongroup", "tomli", "colorama", "attr", "attrs")
_NOT_IN_ITS_WAY = frozenset({"test", "this", "antigravity", "idlelib", "lib2to3", "turtledemo"})
_NODE_MODULES = ("mocha", "chai", "jest", "jest-*", "@jest", "expect", "vitest", "@vitest", "vite", "c8", "nyc", ".bin")


class ProtectedSet(Struct, frozen=True):
    """Patterns that teamchat ships. Those of `files` hold at any depth, `new` for paths that were not there before."""

    files: tuple[str, ...]
    new: tuple[str, ...] = ()


def _module(name: str) -> tuple[str, ...]:
    """List the files that Python would import under that name before the installed module."""
    return name, f"{name}.py", f"{name}.pyc", f"{name}.so", f"{name}.*.so"


def _shadows() -> Iterator[str]:
    """List the files that a run from the top, or of a `src` folder, imports in place of a module that pytest needs.

    A folder without `__init__` comes after the installed module.
    """
    standard = (name for name in sys.stdlib_module_names if name not in _NOT_IN_ITS_WAY)
    for name in sorted({*standard, *_IMPORTED_BY_PYTEST}):
        for folder in ("", "/src"):
            yield from (f"{folder}/{form}" for form in _module(name)[1:])
            yield f"{folder}/{name}/__init__.*"


SETS: Mapping[str, ProtectedSet] = {
    "pytest": ProtectedSet(
        files=(
            *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"),
            *("pyproject.toml", "setup.cfg", "tox.ini", "pyvenv.cfg"),
            *("sitecustomize.*", "usercustomize.*", "*.pth"),
            *("*.dist-info/entry_points.txt", "*.egg-info/entry_points.txt"),
            *(form for name in _PYTHON_MODULES for form in _module(name)),
        ),
        new=tuple(_shadows()),
    ),
    "npm": ProtectedSet(
        files=(
            *("package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "bun.lock", "bun.lockb"),
            *("pnpm-lock.yaml", "pnpm-workspace.yaml", ".pnpmfile.cjs", ".pnp.*", ".npmrc", ".yarnrc", ".yarnrc.yml"),
            *("jest.config.*", "jest.setup.*", "jest.preset.*", "jest-preset.*", "__mocks__"),
            *("vitest.config.*", "vitest.workspace.*", "vitest.setup.*", "vite.config.*"),
            *(".mocharc", ".mocharc.*", "mocha.opts", "babel.config.*", ".babelrc", ".babelrc.*", ".swcrc"),
            *("tsconfig.json", "tsconfig.*.json", ".c8rc*", ".nycrc*", ".taprc", "ava.config.*", "node.config.json"),
            *(f"**/node_modules/{name}" for name in _NODE_MODULES),
        )
    ),
    "make": ProtectedSet(files=("GNUmakefile", "makefile", "Makefile", "*.mk")),
}
_TESTS = ("test", "tests", "__tests__", "__snapshots__", "test_*.py", "*_test.py", "*.test.*", "*.spec.*", "*_test.go")
_NAMES = (*_TESTS, *(pattern.rpartition("/")[2] for one in SETS.values() for pattern in one.files))


def like_tests(paths: Iterable[str]) -> set[str]:
    """Find the paths with a part that is named like tests, or like the configuration of their runner: a guess."""
    return {path for path in paths if any(fnmatchcase(part, name) for part in path.split("/") for name in _NAMES)}


def protected(protect: Sequence[str], folder: str, paths: Collection[str], new: Collection[str] = ()) -> set[str]:
    """Find the `paths` that are protected, by patterns that are relative to `folder`, which may be empty.

    A path of `new` was not there before. Blocks while git looks. Raises `CheckpointFailed`.
    """
    if not (paths and protect):
        return set()
    sets = [SETS[name] for name in protect if name in SETS]
    own = [pattern for pattern in protect if pattern not in SETS]
    shipped = [pattern for one in sets for pattern in one.files]
    found = named_by(_rules(shipped, own, folder), paths)
    shadows = [pattern for one in sets for pattern in one.new]
    if shadows and new:
        found |= named_by(_rules([], [*shadows, *(pattern for pattern in own if pattern[:1] == "!")], folder), new)
    return found


def _rules(everywhere: Sequence[str], own: Sequence[str], folder: str) -> dict[str, Sequence[str]]:
    """Build the rules by their folders; a rule of a deeper folder comes later and so rules, as in git."""
    return {"": everywhere, folder: own} if folder else {"": [*everywhere, *own]}
