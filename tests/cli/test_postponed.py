"""Modules that are loaded at their first use, each test in an interpreter of its own."""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from teamchat.cli.shared.postponed import CONSTANTS, POSTPONED

POSTPONES = "import sys\nfrom teamchat.cli.shared.postponed import postpone, unloaded\npostpone()\n"
STARTS = "from teamchat.cli import app\napp._command('send')\n"


def prints(code: str) -> str:
    """What Python prints for this code once modules are postponed."""
    ran = subprocess.run([sys.executable, "-c", POSTPONES + code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_turn_loads_but_one_of_them() -> None:
    not_among = {"subprocess", "textwrap"}  # asyncio loads the one; only `traceback` imports the other
    assert prints(STARTS + "import asyncio\nprint(*sorted(unloaded))").split() == sorted(POSTPONED - not_among)


def test_every_one_of_them_can_be_used() -> None:
    uses = "for name in sorted(unloaded): hasattr(sys.modules[name], 'anything')\nprint(*unloaded)"
    assert prints(STARTS + "import asyncio, textwrap\n" + uses) == "\n"


def test_a_module_has_the_constants_that_its_importers_read() -> None:
    for name, constants in CONSTANTS.items():
        assert {one: getattr(import_module(name), one) for one in constants} == constants


def test_the_classes_of_datetime_are_those_written_in_c() -> None:
    code = """
import datetime, _datetime, pickle
now = datetime.datetime.now(datetime.UTC)
print(all(getattr(_datetime, name) is getattr(datetime, name) for name in datetime.__all__), *datetime.__all__)
print(pickle.loads(pickle.dumps(now)) == now, datetime.datetime.strptime('2026', '%Y').year)
"""
    names = "MAXYEAR MINYEAR UTC date datetime time timedelta timezone tzinfo"
    assert prints(code) == f"True {names}\nTrue 2026\n"


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


def test_a_class_that_derives_from_one_of_an_unloaded_module_is_whole(tmp_path: Path) -> None:
    (tmp_path / "derived.py").write_text("X = 1\n\n\nclass Derived:\n    def run(self) -> None: ...\n")
    code = f"""
sys.path.insert(0, {str(tmp_path)!r})
import inspect, derived
print('ast' in unloaded)
print(inspect.getsource(derived.Derived), 'ast' in unloaded)
"""
    assert prints(code) == "True\nclass Derived:\n    def run(self) -> None: ...\n False\n"


def test_a_logger_is_the_real_one_as_soon_as_logging_is_used() -> None:
    code = """
import asyncio.base_events
logger = asyncio.base_events.logger
logger.debug('nobody has asked for this')
print('logging' in unloaded)
import logging
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
logger.debug('Using %s', 'epoll')
logger.warning('slow')
print('logging' in unloaded, logger.name)
"""
    assert prints(code) == "True\nDEBUG:asyncio:Using epoll\nWARNING:asyncio:slow\nFalse asyncio\n"


def test_threads_of_an_event_loop_work_while_their_pool_is_loaded() -> None:
    code = """
import asyncio
print('concurrent.futures' in unloaded)
async def twice():
    return await asyncio.gather(asyncio.to_thread(int, '1'), asyncio.to_thread(int, '2'))
print(asyncio.run(twice()), 'concurrent.futures' in unloaded)
"""
    assert prints(code) == "True\n[1, 2] False\n"


def test_the_system_has_its_name_before_and_after_its_module_is_loaded() -> None:
    code = "import platform\nprint(platform.system(), 'platform' in unloaded, platform.node() and platform.system())"
    assert prints(code) == f"{platform.system()} True {platform.system()}\n"


def test_threads_that_use_a_module_at_once_find_it_whole() -> None:
    code = """
import textwrap, threading
begin, found = threading.Barrier(8), []
def use():
    begin.wait()
    found.append(textwrap.dedent('  Hi'))
threads = [threading.Thread(target=use) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
print(found)
"""
    assert prints(code) == f"{['Hi'] * 8}\n"


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
