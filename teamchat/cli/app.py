"""The `teamchat` program: a group that imports a command only when it is called for.

A script pays for every import at every `send`, so nothing heavy is imported here.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from teamchat.cli.startup.interrupts import end_at_once
from teamchat.cli.startup.report import prepare, reported
from teamchat.cli.startup.typed import PROGRAM, TYPED, line_of, name_program
from teamchat.core.errors import ExitCode, UsageError
from teamchat.version import VERSION

EXAMPLES = {
    "init": "teamchat init",
    "send": "git diff | teamchat send --only --to max 'Find bugs'",
    "run": "teamchat run debate --members max,sarah 'Which database?'",
    "check": "teamchat check tests",
    "resume": "teamchat resume --skip",
    "chat": "teamchat chat --new",
    "log": "teamchat log -n 5",
    "watch": "teamchat watch --session s1",
    "show": "teamchat show 3 --prompt",
    "diff": "teamchat diff 2..4 | git apply --check",
    "undo": "teamchat undo 3 --dry-run",
    "doctor": "teamchat doctor --store",
    "redo": "teamchat redo",
    "retry": "teamchat retry --with sarah",
    "open": "teamchat open max",
    "adopt": "teamchat adopt max --last",
    "sessions": "teamchat sessions rename s1 'Version option'",
    "search": "teamchat search 'login error'",
    "branch": "teamchat branch --at msg-4 without-database",
    "compare": "teamchat compare s1 s2",
    "export": "teamchat export --format html > talk.html",
    "import": "teamchat import talk.json",
    "usage": "teamchat usage --all",
    "clear": "teamchat clear",
    "task": "teamchat task 'Port the parser'",
    "todo": "teamchat todo add 'Write the tests'",
    "learn": "teamchat learn 'Run make lint before you commit'",
    "compact": "teamchat compact",
    "report": "teamchat report --json",
    "until": "teamchat until accept tests/test_parser.py",
    "team": "teamchat team --json",
    "worktrees": "teamchat worktrees",
    "merge": "teamchat merge max",
    "trust": "teamchat trust",
    "worker": "teamchat worker --name mac-mini --jobs 2",
    "hosts": "teamchat hosts",
    "stop": "teamchat stop",
    "demo": "teamchat demo --speed 3",
    "replay": "teamchat replay talk.cassette --speed 0",
    "test": "teamchat test recordings",
    "help": "teamchat help routing",
}
BEGINNING = """\
teamchat puts agent CLIs and people into one conversation.
There is no team file in this folder. To begin:
  teamchat demo                      three scripts talk, in a folder of theirs
  teamchat init                      a team of the agent CLIs you have, here
  teamchat send "[NEXT:writer] Hi"   then: your first message
  teamchat --help                    all commands"""
"""The text of `teamchat` alone in a folder without a team."""
LONG = 12  # options; a help with more has them in groups


def explained(name: str, command: Any, panels: Mapping[str, str]) -> Any:
    """Return the command with its example at the end of its help, and with headings for its options if it has many."""
    if name in EXAMPLES:
        command.epilog = f"Example: {EXAMPLES[name]}"
    if len(command.params) > LONG:
        for parameter in command.params:
            if panel := panels.get(parameter.name):
                parameter.rich_help_panel = panel
    return command


COMPLETES = "_TEAMCHAT_COMPLETE"  # the variable by which a shell asks for completions
Shell = Literal["bash", "zsh", "fish", "powershell", "pwsh"]
DAILY = {
    "init": "Write teamchat.toml for the agent CLIs you have, and trust it.",
    "send": "Send a message; members answer until nobody is left to speak.",
    "run": "Have members work on a task by a fixed process.",
    "chat": "Talk at a prompt that stays usable while members work.",
    "resume": "Continue a conversation that failed, was paused or was killed.",
    "log": "Print the conversation, and what is waiting or paused.",
    "show": "Show the receipt of a turn: its input, permissions and result.",
    "diff": "Show what turns changed (piped: a patch for git apply).",
    "undo": "Undo the last turn, or all from TURN on: words, queue and files.",
    "redo": "Redo the last undo, unless the conversation moved on.",
    "doctor": "Check programs, versions, logins, folders and the store.",
    "watch": "Show a conversation that runs in another terminal as it happens.",
    "sessions": "List, rename, delete or move conversations.",
    "search": "Find messages by their words in all conversations.",
    "export": "Write the conversation as Markdown, a web page, data or a recording.",
    "usage": "Show tokens, cost and bytes by member, model and memory.",
    "team": "Show the members: what each may read and do.",
    "merge": "Merge a member's worktree into your files, all or nothing.",
    "worktrees": "List the members' own git worktrees, or remove one.",
    "trust": "Trust the team file as it is now.",
    "stop": "Stop a conversation that is running in another terminal.",
}
"""The commands of the first help, in its order. A command's own help begins with its line."""
COMMANDS = {
    **DAILY,
    "check": "Run a check of the team file, all of them, or a shell command.",
    "retry": "Undo the last turn and run it again.",
    "open": "Open a member's session in its own CLI.",
    "adopt": "Let a member continue a session that you began in its CLI.",
    "branch": "Copy the conversation so far into a new one.",
    "compare": "Show what two conversations answered to the same message.",
    "import": "Begin a conversation from an exported file.",
    "report": "Print the result of the last process again.",
    "until": "Accept what members have changed in protected files.",
    "clear": "Begin history, summary and the agents' own sessions anew here.",
    "task": "Show or set the task that every member is told.",
    "todo": "Show or change the conversation's todo list.",
    "learn": "Store a lesson of this workspace.",
    "compact": "Summarise the conversation.",
    "hosts": "List the hosts on which members can run.",
    "worker": "Run turns on this machine for teamchats that share a database.",
    "demo": "Run a conversation of three small scripts in a folder of its own.",
    "replay": "Play a recorded conversation in a temporary store.",
    "test": "Show how the prompts of recorded conversations have changed.",
    "help": "Print a page of the manual, or list the pages.",
}


def overview() -> str:
    """Write the help of the program: 24 rows of 80 columns, without any import of a command."""
    more = f"{len(COMMANDS) - len(DAILY)} more: teamchat help commands"
    options = _folded("Options: --version --install-completion SHELL --show-completion SHELL --help", 9)
    return f"Usage: teamchat [OPTIONS] COMMAND [ARGS]...\n{rows_of(DAILY)}\n{more}\n{options}\n"


def every_command() -> str:
    """Write the page `commands` of the manual."""
    others = {name: text for name, text in COMMANDS.items() if name not in DAILY}
    return f"Daily:\n{rows_of(DAILY)}\n\nThe others:\n{rows_of(others)}\n\n`teamchat status` is `teamchat log -n 1`."


def rows_of(commands: Mapping[str, str]) -> str:
    return "\n".join(_folded(f" {name:9}  {text}", 12) for name, text in commands.items())


def _folded(line: str, indent: int) -> str:
    width = max(get_terminal_size().columns, 3 * indent)
    return fill(line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


FAMILIAR = ("status", "version")
"""Other words that `meant` recognises even if they are misspelt."""


@cache
def _command(name: str) -> Any:
    from teamchat.cli.startup.options import panels, spread

    own = f"{name}_" if iskeyword(name) else name
    module = import_module(f"teamchat.cli.{own}")
    definition = getattr(module, own)
    single = typer.Typer(add_completion=False)
    if isinstance(definition, typer.Typer):  # a command with commands of its own
        single.add_typer(definition, name=name)
        return explained(name, typer.main.get_group(single).commands[name], {})
    cls = getattr(module, "RunCommand", TyperCommand)
    single.command(name, cls=cls)(spread(definition))
    return explained(name, typer.main.get_command(single), panels(definition))


def guess(typed: str, known: Iterable[str]) -> str:
    """Write the suggestion at the end of an error about an unknown name."""
    from difflib import get_close_matches

    return "".join(f": did you mean {name}?" for name in get_close_matches(typed[:100], known, n=1))


class LazyGroup(TyperGroup):
    """Finds a command in the module of its name, `teamchat/cli/NAME.py`: function NAME, or a Typer with its own.

    Where NAME is a keyword of Python, `_` follows it.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        del ctx
        formatter.write(overview())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        del ctx
        return _command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in COMMANDS or args[0].startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from teamchat.core.engine.processes.table import TAKES

        if args[0] in TAKES:
            raise UsageError(f"there is no command {args[0]!r}: it is a process", line_of("run", *args))
        raise UsageError(f"there is no command {args[0]!r}{guess(args[0], (*COMMANDS, *FAMILIAR))}", "teamchat --help")


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,  # its options take no shell: they guess the calling one
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(ctx: typer.Context, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:  # a shell that completes the line behind it
        typer.echo(f"teamchat {VERSION}")
        raise typer.Exit


def install_completion(ctx: typer.Context, shell: str | None) -> None:
    if shell and not ctx.resilient_parsing:
        from typer._completion_shared import install

        forget_what_no_child_gets()
        _, path = install(shell, "teamchat", COMPLETES)
        typer.echo(f"{shell} completion is in {path}; it works in the next shell")
        raise typer.Exit


def show_completion(ctx: typer.Context, shell: str | None) -> None:
    if shell and not ctx.resilient_parsing:
        from typer._completion_shared import get_completion_script

        typer.echo(get_completion_script(prog_name="teamchat", complete_var=COMPLETES, shell=shell))
        raise typer.Exit


@app.callback()
def teamchat(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    install: Annotated[
        Shell | None,
        typer.Option("--install-completion", callback=install_completion, help="Install completion for this shell."),
    ] = None,
    show: Annotated[
        Shell | None, typer.Option("--show-completion", callback=show_completion, help="Print the completion script.")
    ] = None,
) -> None:
    """Put agent CLIs and people into one conversation: teamchat send "[NEXT:max] Hi"."""
    del version, install, show  # their callbacks did the work
    here()


def here() -> Path:
    """Return the folder where the program was started. Raises `UsageError` if it cannot be read."""
    try:
        return Path.cwd()
    except OSError as error:
        raise UsageError(f"the folder you are in cannot be read: {error.strerror}", "cd") from None


def look_up_programs_in_absolute_folders() -> None:
    """Remove relative folders from PATH, for agents too: each member's working folder would give another one."""
    if path := os.environ.get("PATH"):
        absolute = (folder for folder in path.split(os.pathsep) if os.path.isabs(folder))  # noqa: PTH117 (also of "")
        os.environ["PATH"] = os.pathsep.join(absolute) or os.defpath


def forget_the_repository_of_a_hook() -> None:
    """Remove what leads git to another repository: an editor or `--notify` works in the folder where it starts."""
    from teamchat.runners.environment import GIT_LOCAL

    for name in GIT_LOCAL:
        os.environ.pop(name, None)


def forget_what_no_child_gets() -> None:
    """Remove the variables of teamchat's own, where typer starts a shell to ask for its version or its folder."""
    from teamchat.runners.environment import is_teamchats_own

    for name in filter(is_teamchats_own, tuple(os.environ)):
        del os.environ[name]


@cache
def program() -> Any:
    return typer.main.get_command(app)


def without_words() -> object:
    """Run `teamchat` alone: in a folder with a team file it is `chat` at a terminal, else the help."""
    from teamchat.core.team.find import find_team_file

    if not find_team_file(here()):
        print(BEGINNING.replace("  teamchat ", f"  {PROGRAM.get()} "))
        return ExitCode.USAGE
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        return started(["chat"])
    print(overview(), end="")
    return ExitCode.USAGE


def started(words: list[str]) -> object:
    return program()(words, prog_name="teamchat", standalone_mode=False)


def meant(args: list[str]) -> list[str]:
    """Return the arguments; a familiar command of another program is replaced by the one for the same purpose here."""
    match args:
        case ["version"] | ["-V"]:
            return ["--version"]
        case ["status", *options]:
            return ["log", "-n", "1", *options]
        case ["ls", *options] | ["sessions", "list" | "ls", *options]:
            return ["sessions", *options]
        case ["sessions", "rm" | "remove", *options]:
            return ["sessions", "delete", *options]
        case ["log", number, *options] if number.isdecimal():
            return ["log", "-n", number, *options]
    return args


def run(args: list[str]) -> int:
    """Run the program with these arguments; its exit code."""
    look_up_programs_in_absolute_folders()
    forget_the_repository_of_a_hook()
    if COMPLETES in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
        if not os.environ[COMPLETES].startswith("complete"):  # it needs no store then
            forget_what_no_child_gets()
    TYPED.set(args)
    with reported(args) as ending:
        ending.take(started(meant(args)) if args or COMPLETES in os.environ else without_words())
    return ending.code


def main() -> None:
    prepare()
    name_program(Path(sys.argv[0]))
    code = run(sys.argv[1:])
    end_at_once()
    leave(code)


def leave(code: int) -> None:
    """End the program as the interpreter does, but without taking apart all that was imported: that takes 10 to 40 ms.

    Where the streams cannot be flushed, the interpreter makes an exit code of its own.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 (as the interpreter does, and the next)
    atexit._run_exitfuncs()  # noqa: SLF001
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
