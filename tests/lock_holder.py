"""Another process that holds a session's lock until it is told to end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.program import ROOT

HOLDER = """
import sys
from pathlib import Path
from teamchat.core.files.session_lock import session_lock
with session_lock(Path(sys.argv[1]), "teamchat send 'a very long command'"):
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(path: Path, program: str = HOLDER) -> subprocess.Popen[bytes]:
    """Another process that has the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout
    assert process.stdout.readline() == b"held\n"
    return process
