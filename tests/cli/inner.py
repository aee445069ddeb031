"""Members that run teamchat in their turns: their team, how they start it, and what came of it."""

from __future__ import annotations

import json
import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from teamchat.cli.startup.workspace import store_file
from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from teamchat.core.turn.caller import VARIABLE
from tests.program import ROOT, argv

KEPT = f'PATH="$PATH" PYTHONPATH={ROOT} HOME="$HOME" TEAMCHAT_HOME="$TEAMCHAT_HOME" TMPDIR="$TMPDIR" LC_ALL=C.UTF-8'
BARE = f"env -i {KEPT}"
LOWER = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_RTTIME, (10**9, 10**9)); os.execvp(*LINE)"
FORKED = "import os, sys; (os.fork() and os._exit(0)); os.setsid(); (os.fork() and os._exit(0)); os.execvp(*LINE)"
FORMS = {
    "as it is": "{}",
    "env -u": f"env -u {VARIABLE} {{}}",
    "env -i": f"{BARE} {{}}",
    "setsid": f"setsid --wait {BARE} {{}}",
    "nohup": f"nohup {BARE} {{}} & wait",
    "double fork": f"export P=$$; {{fork}} /bin/sh -c '{BARE} {{}}; touch ../over.$P'; "
    "while [ ! -e ../over.$P ]; do sleep 0.05; done",
    "another state folder": f"{BARE.replace('$TEAMCHAT_HOME', '$PWD/../other')} {{}}",
    "another token": f"env {VARIABLE}=tct_0123456789abcdef0123456789abcdef@/nowhere {{}}",
    "a lower limit": f"{{lower}} {BARE} {{}}",
}
APART = {
    "a process namespace": f"unshare -r -p -f {BARE} {{}}",
    "with its own /proc": f"unshare -r -p -f --mount-proc {BARE} {{}}",
    "with its own /proc and a lower limit": f"unshare -r -p -f --mount-proc {{lower}} {BARE} {{}}",
    "a user namespace without /proc": f"unshare -r -m {BARE} sh -c 'mount -t tmpfs none /proc; exec \"$@\"' sh {{}}",
}
"""Ways in which an agent starts a program, most of which take from it what says that it is in a turn.

Those of `APART` need namespaces, which not every system lets a test have.
"""


def python(script: str) -> str:
    """The beginning of a command line that has Python run the rest of it."""
    return shlex.join([sys.executable, "-c", script.replace("LINE", "(sys.argv[1], sys.argv[1:])")])


def team(limits: str = "", members: str = "", **scripts: str) -> Path:
    """A team whose members run shell scripts. It is trusted. Returns the folder of what they write."""
    world = Path.cwd().parent
    parts = [f'[team]\n[team.limits]\n{limits}\n[[members]]\nname = "kailai"\ntype = "human"']
    for name, script in scripts.items():
        file = world / f"{name}.sh"
        file.write_text(f"cat > /dev/null\n{script}\necho Done\n")
        parts.append(f'[[members]]\nname = "{name}"\nagent = "{name}-agent"\n{members}')
        parts.append(f"[agents.{name}-agent]\ncommand = {json.dumps(['/bin/sh', str(file)])}")
    (file := Path("teamchat.toml")).write_text("\n".join(parts))
    trust_store().grant(load(file.absolute()))
    return world


def inner(*words: str, form: str = "as it is") -> str:
    """A line of a shell that runs teamchat in that form and keeps its exit code and what it printed."""
    line = (FORMS | APART)[form].format(" ".join([*argv(), *words]), fork=python(FORKED), lower=python(LOWER))
    return f"( {line} ) > ../out.$$ 2> ../err.$$; echo $? >> ../codes"


def store() -> sqlite3.Connection:
    return sqlite3.connect(f"file:{store_file(Path.cwd())}?mode=ro", uri=True)


def select(sql: str) -> list[tuple[object, ...]]:
    with closing(store()) as db:
        return db.execute(sql).fetchall()


def errors(world: Path) -> str:
    return "".join(file.read_text() for file in sorted(world.glob("err.*")))


RESULT = {
    "type": "result", "subtype": "success", "is_error": False, "result": "Cheap.", "session_id": "v",
    "total_cost_usd": 0.5, "usage": {"input_tokens": 100, "output_tokens": 20},
}  # fmt: skip
INIT = {"type": "system", "subtype": "init", "session_id": "v", "model": "scripted"}
CHEAP = f"cat > /dev/null\necho '{json.dumps(INIT)}'\necho '{json.dumps(RESULT)}'\n"


def spender(world: Path) -> None:
    """A team of one member that reports 120 tokens and $0.50, in a folder of its own."""
    other = world / "other-team"
    other.mkdir()
    (world / "cheap.sh").write_text(CHEAP)
    command = json.dumps(["/bin/sh", str(world / "cheap.sh")])
    (other / "teamchat.toml").write_text(
        f'[[members]]\nname = "ann"\nagent = "ann-agent"\n[agents.ann-agent]\ncommand = {command}\nlike = "claude"\n'
    )
    trust_store().grant(load(other / "teamchat.toml"))
