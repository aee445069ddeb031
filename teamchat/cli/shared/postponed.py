"""Modules that Python, Typer and msgspec import at their tops, and that hardly a run uses: loaded at their first use.

To load them all takes 5 ms of a start.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from threading import RLock
from types import ModuleType
from typing import Any

POSTPONED = frozenset(
    {
        *("asyncio.sslproto", "asyncio.staggered", "bz2", "ipaddress", "linecache", "locale", "lzma"),
        *("msgspec.inspect", "ntpath", "subprocess", "textwrap", "tokenize"),
    }
)
"""Modules whose importers look up nothing in them before a function is called."""

_loading = RLock()
unloaded: set[str] = set()


class _Unloaded(ModuleType):
    """A module of which only the name and the place are known. What is looked up in it loads it."""

    def __getattr__(self, name: str) -> Any:
        with _loading:  # other threads wait until it is whole
            if self.__name__ in unloaded:
                unloaded.remove(self.__name__)  # first: it may import a module that imports it
                try:
                    SourceFileLoader.exec_module(self.__loader__, self)  # type: ignore[arg-type]
                except BaseException:
                    unloaded.add(self.__name__)
                    raise
                self.__class__ = ModuleType  # type: ignore[assignment]
        return ModuleType.__getattribute__(self, name)


class _Postponing(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        unloaded.add(module.__name__)
        module.__class__ = _Unloaded


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
