"""teamchat, which leaves the most memory that it took, in bytes, in a file `peak` of the working folder."""

from __future__ import annotations

import atexit
import re
from pathlib import Path

from teamchat.cli.app import main

HERE = Path.cwd()


def keep() -> None:
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    (HERE / "peak").write_text(str(int(found[1]) * 1024))


if __name__ == "__main__":
    atexit.register(keep)
    main()
