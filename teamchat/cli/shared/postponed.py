"""Modules that Python, Typer and msgspec import at their tops, and that hardly a run uses: loaded at their first use.

To load them all takes 6 ms of a start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from threading import RLock
from types import ModuleType
from typing import Any

POSTPONED = frozenset(
    {
        *("asyncio.sslproto", "asyncio.staggered", "bz2", "difflib", "gettext", "ipaddress", "linecache", "locale"),
        *("lzma", "msgspec.inspect", "ntpath", "platform", "subprocess", "textwrap", "tokenize"),
    }
)
"""Modules whose importers look up nothing in them before a function is called, except what is in `FUNCTIONS`."""
FUNCTIONS = {"difflib": ("get_close_matches",), "gettext": ("gettext",)}
"""What their importers take out of them. These load the module when they are called."""

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


def _function(module: ModuleType, name: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        _load(module)
        return getattr(module, name)(*args, **options)

    return call


class _Postponing(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        unloaded.add(module.__name__)
        module.__class__ = _Unloaded
        for name in FUNCTIONS.get(module.__name__, ()):
            setattr(module, name, _function(module, name))
        if module.__name__ == "platform":
            module.system = lambda: os.uname().sysname  # type: ignore[attr-defined]  # `uuid` calls it at its import


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name in POSTPONED else None
        if spec is None or not (spec.origin and isinstance(spec.loader, SourceFileLoader)):
            return None
        spec.loader = _Postponing(name, spec.origin)
        return spec


def postpone() -> None:
    """Have the modules loaded at their first use that are not loaded yet.

    `importlib.util.LazyLoader` loads a module as soon as it is imported a second time.
    """
    sys.meta_path.insert(0, _Finder)
