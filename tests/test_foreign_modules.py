"""No module of ours changes a module of Python or of a package: what a reader looks up there is true."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

OWN = "teamchat"
PACKAGE = Path(__file__).parent.parent / OWN
OWN_TO_SET = frozenset(
    {"sys.excepthook", "sys.unraisablehook", "sys.stdin", "sys.stdout", "sys.stderr", "sys.path", "os.environ"}
)
"""What Python documents as a process's own to set."""
PRIVATE = frozenset({"posix", "_ctypes", "_sha2", "_sha256", "_signal", "_socket"})
"""What modules of the standard library are made of."""


def changes(source: str) -> Iterator[str]:
    """Each place that sets or deletes an attribute or an item of a module of others, or imports what it is made of."""
    tree = ast.parse(source)
    modules = dict(_imported(tree))
    yield from (f"import {module}" for module in modules.values() if module.partition(".")[0] in PRIVATE)
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                yield from (text for target in targets for text in _of_module(target, modules))
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                yield from _of_module(target, modules)
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[ast.Name(id=name), *_]) if name in modules:
                yield ast.unparse(node)
            case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in CHANGING:
                yield from _of_module(value, modules)


CHANGING = frozenset({"update", "setdefault", "pop", "popitem", "clear", "__setitem__", "insert", "append", "extend"})


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] != OWN:
                    yield (alias.asname or alias.name.partition(".")[0]), alias.name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] != OWN:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _of_module(target: ast.expr, modules: dict[str, str]) -> Iterator[str]:
    text = ast.unparse(target)
    inner = target
    while isinstance(inner, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(inner, ast.Call):  # vars(module)[...] and globals of a module
            if not (isinstance(inner.func, ast.Name) and inner.func.id == "vars" and inner.args):
                return
            inner = inner.args[0]
        else:
            inner = inner.value
    if inner is target or not isinstance(inner, ast.Name) or inner.id not in modules:
        return
    if text.partition("[")[0] not in OWN_TO_SET:
        yield text


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_of_others_is_changed(path: Path) -> None:
    assert list(changes(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nsys.modules['ssl'] = None\n",
        "import sys\ndel sys.modules['ssl']\n",
        "import sys\nsys.modules.update(x)\n",
        "import typer\nvars(typer.utils)['get_type_hints'] = lambda _: {}\n",
        "import typer.core\ntyper.core.rich = None\n",
        "from rich import console\nconsole.Console = None\n",
        "import json as j\nsetattr(j, 'loads', None)\n",
        "import sys\nsys.meta_path.insert(0, object())\n",
        "from posix import _exit\n",
    ],
)
def test_a_change_is_found(source: str) -> None:
    assert list(changes(source))


@pytest.mark.parametrize("name", ["signal", "asyncio", "json", "typing", "sqlite3", "subprocess"])
def test_a_module_of_the_working_folder_hides_none_of_the_standard_library(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("raise SystemExit('hidden')\n")
    ran = subprocess.run(
        [sys.executable, "-m", OWN, "sessions"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "hidden" not in ran.stderr
