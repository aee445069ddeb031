"""The git that Codex itself runs, without the programs that a repository names (observed at 0.150.0 to 0.169.0).

Codex asks git about the repository outside of its sandbox, under every access. It switches hooks and
`core.fsmonitor` off for that, but `git status` still runs the filters of `.git/config`. So the first git on its
PATH is a script that fails at this one call. Codex uses that call only to tell its vendor whether there are changes.
Every other call goes to the real git. The script lies in a folder `.codex`, which Codex's sandbox lets no command
write.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

_SCRIPT = """\
#!/bin/sh
case " $* " in *" core.fsmonitor=false"*" status "*) exit 128 ;; esac
exec {git} "$@"
"""


def without_filters(scratch: Path, env: Mapping[str, str]) -> tuple[dict[str, str], dict[Path, bytes]]:
    """Build the PATH with the script's folder before all others, and the script; nothing if git is missing."""
    search = env.get("PATH", os.defpath)
    git = shutil.which("git", path=search)
    if git is None:
        return {}, {}
    script = scratch / ".codex" / "bin" / "git"
    return {"PATH": f"{script.parent}{os.pathsep}{search}"}, {script: _SCRIPT.format(git=shlex.quote(git)).encode()}
