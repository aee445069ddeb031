"""What a script pays for each call of teamchat, over a bare Typer program of two commands.

The floor of `send` and `resume` is a command of that program that runs the same agent and stores nothing; that of all
others is its `--version`.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from benchmarks.figure import Measures
from benchmarks.timing import compared
from benchmarks.world import PERSON, World, member, world

AGENT = ("sh", "-c", "cat > /dev/null; echo Hello")
CALLING = "cat > /dev/null; echo Hello $$; echo '[NEXT: {}]'"  # so that the other one waits where `--turns` is 1
TEAM = (
    f"[team.limits]\nturns = 1000\n{PERSON}{member('max', AGENT)}"
    f"{member('sarah', ('sh', '-c', CALLING.format('carol')))}{member('carol', ('sh', '-c', CALLING.format('sarah')))}"
)
BARE = (sys.executable, str(Path(__file__).parent / "floors" / "typer_app.py"))
COMPLETING = {"_TEAMCHAT_COMPLETE": "complete_bash", "COMP_WORDS": "teamchat send --to m", "COMP_CWORD": "3"}
READING = {"--version": 2.0, "log": 2.0, "show": 2.0, "sessions": 2.0}
FLOOR = "bare Typer app, --version"
LOADS = 2.7  # nearly all of it is to load modules: docs/performance.md
ON_HOLD = 7  # the exit code of a run after which somebody waits


def measures(_quick: bool) -> Measures:
    with world(TEAM) as at:
        start = partial(at.run, (*BARE, "--version"))
        script = partial(at.run, (*BARE, "send", "--", *AGENT), b"Hi")
        at.teamchat("send", "--quiet", "Hi")
        for command, bound in READING.items():
            yield command, partial(compared, command, partial(at.teamchat, command), start, FLOOR, bound)
        asks = partial(at.run, (*BARE, "--help"))
        yield "--help", partial(compared, "--help", partial(at.teamchat, "--help"), asks, "bare Typer app, --help", 1.5)
        yield (
            "send --help",
            partial(
                compared, "send --help", partial(at.teamchat, "send", "--help"), asks, "bare Typer app, --help", 1.5
            ),
        )
        yield "help", partial(compared, "help", partial(at.teamchat, "help"), start, FLOOR, 2.0)
        name = "completion of a name"
        complete = World(at.folder, {**at.env, **COMPLETING}).teamchat
        yield name, partial(compared, name, complete, start, FLOOR, 2.0)
        send = partial(at.teamchat, "send", "--quiet", stdin=b"Hi")
        yield "send", partial(compared, "send", send, script, "bare script, same agent", LOADS)
        at.teamchat("send", "--new", "--to", "sarah", "--turns", "1", "Hi", codes=[ON_HOLD])
        resume = partial(at.teamchat, "resume", "--quiet", "--turns", "1", codes=[ON_HOLD])
        yield "resume", partial(compared, "resume", resume, script, "bare script, same agent", LOADS)
