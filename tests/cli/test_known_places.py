"""Modules that are found without a search, each test in an interpreter of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

FINDS = "import sys\nfrom teamchat.cli.shared.known_places import find_by_known_places\nfind_by_known_places()\n"
TOLD = """
import json
from teamchat.cli import app
app._command('send')
import asyncio
def told(one):
    names = ('__file__', '__cached__', '__package__', '__path__', '__doc__')
    return [str(getattr(one, name, None)) for name in names] + [str(one.__spec__.origin), one.__spec__.has_location]
first = sorted(sys.modules)
print(json.dumps({name: told(sys.modules[name]) for name in first if getattr(sys.modules[name], '__spec__', None)}))
"""


def prints(code: str, *options: str, cwd: Path | None = None) -> str:
    ran = subprocess.run([sys.executable, *options, "-c", code], cwd=cwd, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_what_is_found_is_what_a_search_finds() -> None:
    found, searched = (json.loads(prints(start + TOLD)) for start in (FINDS, "import sys\n"))
    extra = {"teamchat.cli.shared.known_places"}
    assert {name: told for name, told in found.items() if name not in extra} == searched


def test_most_modules_of_a_command_are_found_without_a_search() -> None:
    code = """
from importlib.machinery import PathFinder
searched = []
class Search:
    @staticmethod
    def find_spec(name, path=None, target=None):
        searched.append(name)
sys.meta_path.insert(sys.meta_path.index(PathFinder), Search)
before = len(sys.modules)
from teamchat.cli import app
app._command('send')
print(len(sys.modules) - before - len(searched) > 80, [name for name in searched if name.startswith('teamchat')])
"""
    assert prints(FINDS + code) == "True []\n"


def test_a_source_that_has_changed_is_compiled_again(tmp_path: Path) -> None:
    package = tmp_path / "typer"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "own.py").write_text("X = 1\n")
    code = FINDS + f"sys.path.insert(0, {str(tmp_path)!r})\nfrom typer.own import X\nprint(X)"
    assert prints(code) == "1\n"
    assert list(package.glob("__pycache__/own.*.pyc"))
    (package / "own.py").write_text("X = 23\n")
    assert prints(code) == "23\n"
    (package / "own.py").write_text("X = 42\n")  # of the same size, at another time
    os.utime(package / "own.py", (1, 1))
    assert prints(code) == "42\n"


def test_the_working_folder_hides_no_module_of_the_library(tmp_path: Path) -> None:
    (tmp_path / "textwrap.py").write_text("raise SystemExit('taken from the working folder')\n")
    code = f"sys.path.insert(0, {str(tmp_path)!r})\nimport textwrap\nprint(textwrap.dedent('  Hi'))"
    assert prints(FINDS + code) == "Hi\n"


def test_other_compiled_files_are_left_to_python(tmp_path: Path) -> None:
    installed = FINDS + "print([one.__module__ for one in sys.meta_path if one.__module__.startswith('teamchat')])"
    assert prints(installed) == "['teamchat.cli.shared.known_places']\n"
    assert prints(installed, "-O") == "[]\n"
    assert prints(installed, "-X", f"pycache_prefix={tmp_path}") == "[]\n"
