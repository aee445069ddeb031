from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from teamchat.cli.output.lines import note
from teamchat.cli.running.playback import play
from teamchat.cli.running.request import Request, send_message
from teamchat.cli.startup.options import SPEED, JsonOption, NewPlace, RunOutput, ShownOptions
from teamchat.cli.startup.typed import PROGRAM, TYPED, placed_here
from teamchat.cli.startup.workspace import begin_run, find_team, need_person
from teamchat.core.agents import CLIS
from teamchat.core.cassette.format import parse_cassette
from teamchat.core.checkpoint.git import GitFailed, GitProgram
from teamchat.core.conversation.inputs import Message, typed_spans
from teamchat.core.engine.state import UNBOUNDED
from teamchat.core.errors import CheckpointFailed, ExitCode
from teamchat.core.team.find import FILE_NAME
from teamchat.core.team.init import plan_scripts, write_team
from teamchat.core.team.team import login_name
from teamchat.core.text.commands import quote

AFTER = """
That was a recording: no agent ran, and nothing left this machine. To go on:
  teamchat demo                       small scripts run for real, in a folder of their own
  teamchat init                       a team of the agent CLIs you have
  teamchat send "[NEXT:writer] Hi"    your first message
  teamchat --help                     all commands"""
MESSAGE = "[NEXT:planner] Our posts need readable addresses. Write slug.py, and have it tried."
RecordedOption = Annotated[
    bool, typer.Option("--recorded", help="Play a recorded session of the real CLIs instead; no agent runs.")
]


def demo(
    recorded: RecordedOption = False, speed: Annotated[float | None, SPEED] = None, as_json: JsonOption = False
) -> int:
    """Run a conversation of three small scripts in a folder of its own, and say how to go on.

    --speed and --json play the recorded session, too.
    """
    if not (recorded or as_json or speed is not None):
        return _run()

    text = files("teamchat.cli").joinpath("demo.cassette").read_text(encoding="utf-8")
    code = play(parse_cassette(text, "the demo"), ShownOptions(as_json), speed=1.0 if speed is None else speed)
    if code != ExitCode.HUMAN_ASKED:  # the usual end
        return code
    if not as_json:
        print(AFTER.replace("  teamchat ", f"  {PROGRAM.get()} "))
    return ExitCode.DONE


def _run() -> int:
    """Run a real conversation: `init --template offline` makes such a team, and `send` runs it like this."""
    need_person("the demo is run")
    file = Path(tempfile.mkdtemp(prefix="teamchat-demo-")) / FILE_NAME
    write_team(plan_scripts("demo", "demo", login_name()), file)
    # With git a turn's files can be undone, too.

    with contextlib.suppress(GitFailed, CheckpointFailed):
        GitProgram(file.parent)("init", "--quiet", "--template=")
    TYPED.set(["send", "--team", str(file)])
    if PROGRAM.get() == "teamchat" and not shutil.which("teamchat"):
        PROGRAM.set(f"{quote(sys.executable)} -m teamchat")
    team = find_team(str(file))
    begin_run(team, record=None, trust=True)
    note(f"three scripts are a team in {file.parent}")
    if not sys.stdout.isatty():  # a terminal shows your message itself
        note(f"you: {MESSAGE}")
    message = Message(text=MESSAGE, typed=typed_spans(len(MESSAGE)))
    request = Request(team=team, message=message, place=NewPlace(team=str(file), new=True), bounds=UNBOUNDED)
    code = send_message(request, RunOutput(), wait=True, ask=False)
    if code != ExitCode.HUMAN_ASKED:  # the usual end
        return code
    print(_next(file))
    return ExitCode.DONE


def _next(file: Path) -> str:
    """Write the commands to type next. No agent CLI is needed for any of it."""
    has_cli = any(shutil.which(row.name) for row in CLIS)
    files = ", and slug.py" if (file.parent / ".git").exists() else ""
    own = ("a team of the agent CLIs you have", "") if has_cli else ("the same scripts", " --template offline")
    return f"""
Each turn started a program and left a receipt. This is in
  {file.parent}
What builder was told, byte for byte:
  {placed_here("teamchat show 2 --prompt")}
Answer checker:
  {placed_here("teamchat send --to checker 'Yes'")}
Take back what builder and checker said{files}:
  {placed_here("teamchat undo 2 --yes")}
In a folder of yours, {own[0]}:
  {PROGRAM.get()} init{own[1]}"""
