"""Renames that destroy nothing: two names exchange their files, or a name moves to a free one.

Linux has `renameat2` for it, macOS `renameatx_np`. Where a file system knows neither, a file is linked and renamed in
steps: then its name is missing for a moment, and never another file of somebody's.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from functools import cache
from typing import Any

BETWEEN = "-between"
_LINUX = ("renameat2", 1, 2)  # the function, its flag to replace nothing, its flag to exchange
_DARWIN = ("renameatx_np", 4, 2)
_UNKNOWN = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


def move(old_folder: int, old: str, new_folder: int, new: str) -> None:
    """Rename the entry at `old`. Raises `FileExistsError` where anything is at `new`, and other `OSError`."""
    sys.audit("os.rename", old, new, old_folder, new_folder)
    if _rename(old_folder, old, new_folder, new, exchange=False):
        return
    if stat.S_ISDIR(os.lstat(old, dir_fd=old_folder).st_mode):  # a rename of a folder replaces an empty one at most
        os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
        return
    try:
        os.link(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder, follow_symlinks=False)
    except PermissionError:  # a file system without hard links
        try:
            os.lstat(new, dir_fd=new_folder)
        except FileNotFoundError:
            os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
            return
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
    os.unlink(old, dir_fd=old_folder)


def exchange(one_folder: int, one: str, other_folder: int, other: str) -> None:
    """Let two names change places. Raises `FileNotFoundError` where one is missing, and other `OSError`."""
    sys.audit("os.rename", one, other, one_folder, other_folder)
    if not _rename(one_folder, one, other_folder, other, exchange=True):
        # The file from `other` waits beside `one`, where the process that completes a killed exchange finds it.
        between = f"{one}{BETWEEN}"
        move(other_folder, other, one_folder, between)
        try:
            move(one_folder, one, other_folder, other)
        except OSError:
            move(one_folder, between, other_folder, other)
            raise
        move(one_folder, between, one_folder, one)


def _rename(old_folder: int, old: str, new_folder: int, new: str, *, exchange: bool) -> bool:
    """Rename a file; return False where the system or the file system does not know such a rename. Raises `OSError`."""
    function, no_replace, swap = _function()
    if function is None:
        return False
    flag = swap if exchange else no_replace
    if function(old_folder, os.fsencode(old), new_folder, os.fsencode(new), flag) == 0:
        return True
    failed = ctypes.get_errno()
    if failed in _UNKNOWN:
        return False
    raise OSError(failed, os.strerror(failed), new)


@cache
def _function() -> tuple[Any, int, int]:
    name, no_replace, swap = _DARWIN if sys.platform == "darwin" else _LINUX
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return function, no_replace, swap
