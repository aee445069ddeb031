"""Modules that are loaded at their first use, each test in an interpreter of its own."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

from teamchat.cli.shared.postponed import POSTPONED

POSTPONES = "import sys\nfrom teamchat.cli.shared.postponed import postpone, unloaded\npostpone()\n"
STARTS = "from teamchat.cli import app\napp._command('send')\n"


def prints(code: str) -> str:
    """What Python prints for this code once modules are postponed."""
    ran = subprocess.run([sys.executable, "-c", POSTPONES + code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_turn_loads_but_one_of_them() -> None:
    assert prints(STARTS + "import asyncio\nprint(*sorted(unloaded))").split() == sorted(POSTPONED - {"subprocess"})


def test_every_one_of_them_can_be_used() -> None:
    uses = "import asyncio\nfor name in sorted(unloaded): hasattr(sys.modules[name], 'anything')\nprint(*unloaded)"
    assert prints(STARTS + uses) == "\n"


def test_a_module_that_was_loaded_is_like_any_other() -> None:
    code = """
import textwrap, types
assert 'dedent' not in vars(textwrap)
print(textwrap.dedent('  Hi'), type(textwrap) is types.ModuleType, textwrap.__spec__.name)
from textwrap import fill
try:
    textwrap.nothing
except AttributeError as error:
    print(error)
"""
    assert prints(code) == "Hi True textwrap\nmodule 'textwrap' has no attribute 'nothing'\n"


def test_a_function_that_is_imported_by_its_name_loads_its_module_when_it_is_called() -> None:
    code = """
from difflib import get_close_matches
print('difflib' in unloaded, get_close_matches('maxx', ['max', 'sarah'], n=1), 'difflib' in unloaded)
import difflib
print(get_close_matches is difflib.get_close_matches, get_close_matches('saraah', ['max', 'sarah']))
"""
    assert prints(code) == "True ['max'] False\nFalse ['sarah']\n"


def test_the_system_has_its_name_before_and_after_its_module_is_loaded() -> None:
    code = "import platform\nprint(platform.system(), 'platform' in unloaded, platform.node() and platform.system())"
    assert prints(code) == f"{platform.system()} True {platform.system()}\n"


def test_threads_that_use_a_module_at_once_find_it_whole() -> None:
    code = """
import ipaddress, threading
begin, found = threading.Barrier(8), []
def use():
    begin.wait()
    found.append(ipaddress.ip_network('10.0.0.0/8').is_private)
threads = [threading.Thread(target=use) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
print(found)
"""
    assert prints(code) == f"{[True] * 8}\n"


def test_a_module_that_could_not_be_loaded_is_loaded_at_the_next_use(tmp_path: Path) -> None:
    (tmp_path / "tokenize.py").write_text("import pathlib\nif pathlib.Path('broken').exists(): raise OSError\nX = 1\n")
    code = f"""
import os
os.chdir({str(tmp_path)!r})
sys.path.insert(0, '')
import tokenize
open('broken', 'w').close()
try:
    tokenize.X
except OSError:
    os.remove('broken')
print(tokenize.X)
"""
    assert prints(code) == "1\n"
