"""sha256 from Python's own module, as `random` has it: `hashlib` loads OpenSSL, which takes 3 ms of each command."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        from _sha2 import sha256
    except ImportError:
        try:
            from _sha256 import sha256  # Python 3.11
        except ImportError:  # a Python without its own
            from hashlib import sha256

__all__ = ["sha256"]
