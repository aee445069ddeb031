"""Modules that Python, Typer and msgspec import at their tops, and that hardly a run uses: loaded at their first use.

To load them all takes 12 ms of a start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.machinery import FrozenImporter, ModuleSpec, SourceFileLoader
from threading import RLock
from types import ModuleType
from typing import Any

POSTPONED = frozenset(
    {
        *("asyncio.format_helpers", "asyncio.sslproto", "asyncio.staggered", "asyncio.trsock"),  # for asyncio
        *("concurrent.futures", "logging", "subprocess", "traceback"),  # for asyncio
        *("ast", "dis", "linecache", "token", "tokenize"),  # for inspect
        *("bz2", "fnmatch", "lzma"),  # for shutil
        *("ntpath", "urllib.parse"),  # for pathlib
        "platform",  # for uuid and typer
        "locale",  # for subprocess
        "textwrap",  # for traceback
        *("difflib", "gettext", "typer._completion_classes", "typer._completion_shared"),  # for typer
        *("msgspec._json_schema", "msgspec.inspect", "msgspec.toml", "msgspec.yaml"),  # for msgspec
        "shlex",  # for teamchat
    }
)
"""Modules whose importers look up nothing in them before a function is called, except what is below.

If the tests fail with another one here, its importer takes something out of it: that needs a stand-in or a constant.
"""
STAND_INS = {
    "ast": ("NodeVisitor",),
    "difflib": ("get_close_matches",),
    "gettext": ("gettext",),
    "msgspec._json_schema": ("schema", "schema_components"),
    "traceback": ("FrameSummary", "StackSummary", "extract_stack"),
    "typer._completion_classes": ("completion_init",),
    "typer._completion_shared": ("Shells", "_get_shell_name", "get_completion_script", "install"),
    "urllib.parse": ("quote_from_bytes",),
}
"""What their importers take out of them. To call it, or to look something up in it, loads the module."""
FLAGS = (
    *("OPTIMIZED", "NEWLOCALS", "VARARGS", "VARKEYWORDS", "NESTED"),
    *("GENERATOR", "NOFREE", "COROUTINE", "ITERABLE_COROUTINE", "ASYNC_GENERATOR"),
)
CONSTANTS: Mapping[str, Mapping[str, object]] = {
    "concurrent.futures": {name: name for name in ("FIRST_COMPLETED", "FIRST_EXCEPTION", "ALL_COMPLETED")},
    "dis": {"COMPILER_FLAG_NAMES": dict(zip((1 << bit for bit in range(10)), FLAGS, strict=True))},
    "logging": {"DEBUG": 10},
}
"""What `asyncio` and `inspect` read of them at their imports."""

_loading = RLock()
unloaded: set[str] = set()


class _Unloaded(ModuleType):
    """A module of which only the name and the place are known. What is looked up in it loads it."""

    def __getattr__(self, name: str) -> Any:
        if name != "__path__":  # which `from ... import` looks for, and only a package has
            _load(self)
        return ModuleType.__getattribute__(self, name)


def _load(module: ModuleType) -> None:
    with _loading:  # other threads wait until it is whole
        if module.__name__ not in unloaded:
            return
        unloaded.remove(module.__name__)  # first: it may import a module that imports it
        try:
            SourceFileLoader.exec_module(module.__loader__, module)  # type: ignore[arg-type]
        except BaseException:
            unloaded.add(module.__name__)
            raise
        module.__class__ = ModuleType


class _StandIn:
    """Stands for a function, an object or a base class of an unloaded module."""

    def __init__(self, module: ModuleType, name: str) -> None:
        self._of, self._name = module, name

    def _found(self) -> Any:
        _load(self._of)
        return getattr(self._of, self._name)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._found()(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found(), name)

    def __mro_entries__(self, _bases: object) -> tuple[type]:
        """The class that others derive from: what an instance lacks is a method of the real one."""
        method = {"__getattr__": lambda one, name: getattr(self._found(), name).__get__(one)}
        return (type(self._name, (), method),)


class _Logger(_StandIn):
    """Stands for the logger of that name. While `logging` is not loaded, nobody has asked for debug messages."""

    def _found(self) -> Any:
        _load(self._of)
        return self._of.getLogger(self._name)

    def debug(self, *args: Any, **options: Any) -> None:  # `asyncio` logs one for each event loop
        if self._of.__name__ not in unloaded:
            self._found().debug(*args, **options)


class _Postponing(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        unloaded.add(module.__name__)
        module.__class__ = _Unloaded
        for name in STAND_INS.get(module.__name__, ()):
            setattr(module, name, _StandIn(module, name))
        vars(module).update(CONSTANTS.get(module.__name__, {}))
        if module.__name__ == "logging":
            module.getLogger = partial(_Logger, module)  # type: ignore[attr-defined]
        if module.__name__ == "platform":
            module.system = lambda: os.uname().sysname  # type: ignore[attr-defined]  # `uuid` calls it at its import


class _WrittenInC:
    """Loads `datetime`: Python 3.11 first runs all of it in Python, and then replaces it by what is written in C."""

    @staticmethod
    def create_module(_spec: ModuleSpec) -> None:
        return None

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        found = vars(import_module(f"_{module.__name__}"))
        public = {name: value for name, value in found.items() if not name.startswith("__")}
        vars(module).update(public, __all__=sorted(public.keys() - {"datetime_CAPI"}))


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "datetime" and sys.version_info < (3, 12):
            return ModuleSpec(name, _WrittenInC())  # type: ignore[arg-type]
        if name not in POSTPONED:
            return None
        others = (finder for finder in sys.meta_path if finder not in (_Finder, FrozenImporter))
        spec = next(filter(None, (finder.find_spec(name, path) for finder in others)), None)
        if spec is None or not (spec.origin and isinstance(spec.loader, SourceFileLoader)):
            return None
        spec.loader = _Postponing(name, spec.origin)
        return spec


def postpone() -> None:
    """Have the modules loaded at their first use that are not loaded yet.

    `importlib.util.LazyLoader` loads a module as soon as it is imported a second time.
    """
    sys.meta_path.insert(0, _Finder)
