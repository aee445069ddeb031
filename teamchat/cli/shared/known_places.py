"""Finds modules whose place is known: those of the standard library, of msgspec, Typer and teamchat.

Python asks each folder of `sys.path` for every module, and works its names out in Python. `send` loads 300 modules, and
this takes 7 ms less. It also keeps a module of the working folder from hiding one of the standard library, where
`python -m teamchat` has that folder first. So it is imported before others, and imports what Python has loaded already.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, PathFinder, SourceFileLoader
from marshal import loads
from posix import O_CLOEXEC, O_RDONLY, close, fstat, read, stat, stat_result
from posix import open as open_

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

LIBRARY = os.path.dirname(os.__file__)  # noqa: PTH120
PACKAGES = sys.stdlib_module_names | {"msgspec", "teamchat", "typer"}
"""Their extension modules have other names than their Python files."""
COMPILED = f".{sys.implementation.cache_tag}.pyc"
HEAD = MAGIC_NUMBER + bytes(4)  # of a compiled file that has the time and the size of its source
LAST_4_BYTES = 0xFFFFFFFF
CODE_AT = len(HEAD) + 8


class _Loader(SourceFileLoader):
    """Reads the compiled file if it is that of the source; otherwise does what any loader of a source does."""

    def __init__(self, name: str, source: str, compiled: str, found: stat_result) -> None:
        super().__init__(name, source)
        self._compiled, self._found = compiled, found

    def get_code(self, fullname: str) -> CodeType | None:
        return _code(self._compiled, self._found) or super().get_code(fullname)


def _code(compiled: str, source: stat_result) -> CodeType | None:
    try:
        descriptor = open_(compiled, O_RDONLY | O_CLOEXEC)
        try:
            data = read(descriptor, fstat(descriptor).st_size)
        finally:
            close(descriptor)
    except OSError:
        return None
    time, size = int(source.st_mtime) & LAST_4_BYTES, source.st_size & LAST_4_BYTES
    if not data.startswith(HEAD + time.to_bytes(4, "little") + size.to_bytes(4, "little")):
        return None
    code: CodeType = loads(memoryview(data)[CODE_AT:])  # noqa: S302
    return code


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, last = name.rpartition(".")
        if path is None:
            if name not in sys.stdlib_module_names:
                return None
            folder = LIBRARY
        elif package.partition(".")[0] in PACKAGES and len(path) == 1:
            folder = path[0]
        else:
            return None
        try:
            return _spec(name, f"{folder}/{last}.py", f"{folder}/__pycache__/{last}{COMPILED}")
        except OSError:
            inside = f"{folder}/{last}"
        try:
            spec = _spec(name, f"{inside}/__init__.py", f"{inside}/__pycache__/__init__{COMPILED}")
        except OSError:
            return None
        spec.submodule_search_locations = [inside]
        return spec


def _spec(name: str, source: str, compiled: str) -> ModuleSpec:
    spec = ModuleSpec(name, _Loader(name, source, compiled, stat(source)), origin=source)
    spec.cached = compiled
    spec.has_location = True
    return spec


def find_by_known_places() -> None:
    """Find them there, unless Python was told to use other compiled files."""
    if not (sys.flags.optimize or sys.pycache_prefix) and PathFinder in sys.meta_path:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), _Finder)
