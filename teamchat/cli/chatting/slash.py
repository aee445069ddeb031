"""The commands of chat: the command line's own words after a `/`, run in the same process with the same session.

A line that begins with `/` and a word is a command or an error, so that a mistyped `/quit` is not sent to a member.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from shutil import get_terminal_size

import typer
from msgspec import Struct

from teamchat.cli.app import COMMANDS, meant, program
from teamchat.cli.output.terminal.wrap import wrapped
from teamchat.cli.startup.report import reported
from teamchat.cli.startup.typed import TAKERS, TYPED, TYPED_HERE, has, line_of, named
from teamchat.core.errors import ExitCode, UsageError
from teamchat.core.team.problems import line_of as line_in_file
from teamchat.core.team.programs import job_of
from teamchat.core.team.team import Member, Team
from teamchat.patterns import regex
from teamchat.runners.untrusted.regular_files import read_regular_text

OUTSIDE = frozenset({"init", "chat", "watch", "import", "demo", "replay", "test", "worker"})
"""The commands that do not run in chat: they need the terminal for themselves, or start a session of their own."""
OF_CHAT = {
    "new": "begins another conversation with the next message: /new, or /new TITLE",
    "stop": "stops the turn that runs, and what is queued, too",
    "quit": "leaves, as /exit and Ctrl-D do; teamchat chat continues",
}
"""The commands that only chat has, with their help."""
WORDS = {
    **{word: (word,) for word in COMMANDS if word not in {*OUTSIDE, *OF_CHAT}},
    "summary": ("compact",),
    "status": ("log", "-n", "1"),
    "cost": ("usage",),
    "model": ("team",),
}
"""Each command of chat, and the command line that it runs."""
SAME = {"exit": "quit", "?": "help"}
"""Aliases."""
PRINTS = frozenset(
    {"help", "log", "show", "diff", "search", "team", "task", "usage", "status", "cost", "model", "report"}
)
"""The commands that only print: the prompt stays while they run. The others may ask something."""
WAITS = frozenset({
    "branch", "check", "clear", "compact", "compare", "doctor", "learn", "merge", "new", "open", "resume", "retry",
    "run", "send", "summary",
})  # fmt: skip
"""The commands that are refused while members work: they run members, or read files that members change."""
BEGINS = frozenset({"send", "run", "check", "task", "todo", "adopt"})
"""The commands that begin the conversation if it has not begun yet."""
OF_ALL = frozenset({"learn", "search"})
"""The commands that then look at all conversations."""
NOT_BEGUN = "this conversation has not begun: a message, /task or /todo add begins it"
TEXT_BEHIND = {"task": 0, "learn": 0, "send": 0, "run": 1, "check": 0, "todo": 1}
"""The commands whose last argument is free text, and the number of arguments before it."""
WORKING = "members are working; wait for them, or stop them with Ctrl-C"
MEANT = {
    "abort": "stop", "cancel": "stop", "bye": "quit", "q": "quit", "h": "help", "commands": "help", "rewind": "undo",
    "restore": "undo",
    "checkpoint": "undo", "fork": "branch", "history": "log", "stats": "usage", "tokens": "usage", "models": "model",
    "members": "team", "chats": "sessions", "session": "sessions", "continue": "resume", "reset": "clear",
    "todos": "todo", "tasks": "todo", "lessons": "learn", "lead": "team", "find": "search", "compress": "compact",
}  # fmt: skip
"""Names that other programs use for a command of chat."""
_ACCESS = "`access` and `allow` of a member in the team file; /team shows what each may"
_MEMBERS = "the members of the team file are the agents here; /team shows them"
_OWN = "each CLI has its own: set them up in that CLI, in another terminal"
_LOGIN = "log in with the CLI itself in another terminal, such as claude /login; /doctor says who is logged in"
_FOLDER = "`cwd` of a member in the team file is the folder that it works in"
_FILE = "teamchat.toml, the team file, has the settings; /team shows the members"
_MEMORY = "a note for every session goes into CLAUDE.md or AGENTS.md, or /learn stores it"
_BACKGROUND = (
    "nothing runs in the background of chat; nohup teamchat send ... & goes on without this terminal, and teamchat "
    "watch shows it"
)
_EDITOR = "Ctrl-G or Ctrl-X Ctrl-E opens the text in $VISUAL or $EDITOR"
_NONE = "there is none here, and nothing that does it"
OF_OTHERS = {
    **dict.fromkeys(("permissions", "approvals", "approve", "sandbox", "allowed-tools"), _ACCESS),
    "tools": "`access`, `allow`, `web` and `mcp` of a member in the team file; /team shows what each may",
    "mcp": "`mcp` of a member in the team file names its servers; /team shows what each may",
    **dict.fromkeys(("agents", "agent", "subagents"), _MEMBERS),
    "hooks": "[hooks] of the team file runs commands when something happens; /help hooks explains it",
    **dict.fromkeys(
        ("extensions", "plugin", "plugins", "apps", "skills", "prompts", "privacy", "privacy-settings"), _OWN
    ),
    "context": "/usage shows what was spent, and /show --prompt what an agent was sent",
    "rename": "/sessions rename NAME TITLE",
    "copy": "/export writes the conversation, and /show --reply prints one reply",
    **dict.fromkeys(("review", "code-review"), "`@{reviewer} Review the changes` asks {reviewer} for it"),
    "security-review": "`@{reviewer} Review the changes for security` asks {reviewer} for it",
    "memory": _MEMORY,
    "plan": '`access = "read"` of a member in the team file lets it read and plan, and change nothing',
    **dict.fromkeys(("bashes", "background", "bg", "ps"), _BACKGROUND),
    "theme": "TEAMCHAT_THEME=light or dark, set before chat begins",
    **dict.fromkeys(("statusline", "terminal-setup", "output-style", "keymap", "color", "ide", "stash"), _NONE),
    "vim": f"there is none here; {_EDITOR}",
    "editor": _EDITOR,
    **dict.fromkeys(("bug", "feedback"), "there is none here; a CLI has its own, in another terminal"),
    "release-notes": "teamchat --version, in another terminal, says which one this is",
    "upgrade": "each CLI is updated in another terminal; /doctor says which versions are there",
    **dict.fromkeys(("login", "logout", "auth"), _LOGIN),
    **dict.fromkeys(("config", "settings"), _FILE),
    **dict.fromkeys(("add-dir", "directory"), _FOLDER),
    "mention": "the path in the message: @src/app.py inside a line is read by a CLI that reads such files",
}
"""Commands of Claude Code, Codex and Gemini CLI without a counterpart here, and what does it here."""
HABITS = (
    (regex(r"exit|quit|:q"), "/quit or Ctrl-D leaves"),
    (regex("help"), "/help lists the commands"),
    (regex(rf"teamchat ({'|'.join(COMMANDS)})( .*)?"), "a command has a / here, as in /resume"),
    (regex(r"![ \t]*\S.*"), "chat runs no shell: use another terminal, or Ctrl-Z, and fg to come back"),
    (regex(r"#[ \t]+\S.*"), _MEMORY),
    (regex(r"&([ \t].*)?"), _BACKGROUND),
)
"""Whole lines that hands type out of habit, and what does it here."""
SENDS = "(a space before it sends it)"
NEAR = 0.75  # similarity of the spelling, for a guess
_WORD = regex(r"/([^\W\d][^\s]*|\?)")
_FILE_NAME = regex(r"\.\w")


class SlashCommand(Struct, frozen=True):
    """A command of chat: its words, and the line that was typed."""

    words: tuple[str, ...]
    line: str


def habit_of(text: str) -> list[str]:
    """Explain, in lines, a whole typed text that is a habit from another program; empty for a message."""
    line = text.rstrip()
    if line == "?":
        return [*keys(), f"· ? is not sent {SENDS}"]
    advice = (does for habit, does in HABITS if habit.fullmatch(line))
    return [f"✗ {line.split()[0]} is not sent: {does} {SENDS}" for does in advice]


def command_of(line: str, team: Team | None = None) -> SlashCommand | None:
    """Parse a typed line as a command; None for a message.

    A line is a message if its first word has a second `/`, looks like a file name, or is an existing path. Raises
    `UsageError` for any other unknown command, and for a quote that is not closed. The error proposes a member of the
    `team` whose CLI has the command.
    """
    match = _WORD.match(line)
    if match is None:
        return None
    word = SAME.get(match[1], match[1])
    if word not in WORDS and word not in OF_CHAT:
        if _is_path(match[1]):
            return None
        raise UsageError(f"{_no_command(match[1], team)} {SENDS}")
    rest = line[match.end() :]
    try:
        words = _with_text(word, rest.strip()) if word in {*TEXT_BEHIND, "new"} else shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"{match[0]}: {str(error).lower()}") from None
    return SlashCommand((word, *words), line.strip())


def _is_path(word: str) -> bool:
    if "/" in word or _FILE_NAME.search(word):
        return True
    try:
        return Path(f"/{word.rstrip('.,:;!?)')}").exists()
    except (OSError, ValueError):
        return False


def _no_command(word: str, team: Team | None) -> str:
    """Word the error for an unknown command, with what to type instead."""
    lower = word.lower().rstrip(".,:;!")
    if lower in OUTSIDE:
        return f"/{word} runs outside of chat: {line_of(lower)}"
    there = f"there is no command /{word}"
    if near := _near(lower):
        return f"{there}: did you mean /{near}?"
    advice = OF_OTHERS.get(lower, "").format(reviewer=_reviewer(team))
    owner = _owner(word, team) if team else None
    gives = f"@{owner} /{word} gives it to {owner}, whose CLI has it" if owner else ""
    instead = "; ".join(filter(None, (advice, gives)))
    return f"{there}: {instead}" if instead else f"{there}; /help lists them"


def _reviewer(team: Team | None) -> str:
    """Choose the agent to ask for a review: the first one that is not the lead."""
    agents = sorted(team.ai_members, key=lambda member: member.name == team.lead) if team else ()
    return next((member.name for member in agents), "NAME")


def _owner(word: str, team: Team) -> str | None:
    """Find the first member whose CLI has a custom command of this name, by the file that defines it."""
    for member in team.ai_members:
        agent = team.agent_of(member)
        rule = agent.type.runner.slash
        command = rule.find(f"/{word}", job_of(member, agent, os.environ)) if rule else None
        if command and not command.refused:
            return member.name
    return None


def _near(word: str) -> str | None:
    """Find the command with the same meaning or a similar spelling, if there is one."""
    if word in OF_OTHERS:
        return None
    choices = {*WORDS, *OF_CHAT, *SAME}
    if word in choices or word in MEANT:
        return MEANT.get(word, word)
    close = get_close_matches(word[:100], choices, n=1, cutoff=NEAR)
    return close[0] if close and close[0][0] == word[0] else None


def _with_text(word: str, rest: str) -> list[str]:
    """Split the arguments of a command whose last one is free text. The text is not split."""
    words: list[str] = []
    before, options = TEXT_BEHIND.get(word, 0), _options(word)
    while rest:
        head = rest.split(maxsplit=1)[0]
        name, equals, _ = head.partition("=")
        if name not in options and not before:
            break
        taken = 1 if name not in options or equals or not options[name] else 2
        if name not in options:
            before -= 1
        for _ in range(taken):
            first, rest = _first_word(rest)
            words.append(first)
    if word == "todo" and words[:1] != ["add"]:
        return [*words, *shlex.split(rest)]
    if not rest:
        return words
    with contextlib.suppress(ValueError):
        if rest[0] in "'\"" and len(whole := shlex.split(rest)) == 1:
            rest = whole[0]
    return [*words, rest] if word == "new" else [*words, "--", rest]


def _options(word: str) -> dict[str, bool]:
    """List the options of a command, and whether they take a value."""
    if word in OF_CHAT:
        return {}
    parameters = program().get_command(None, WORDS[word][0]).params
    return {
        option: not getattr(parameter, "is_flag", False)
        for parameter in parameters
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("-")
    }


def _first_word(text: str) -> tuple[str, str]:
    """Split off the first word as a shell reads it. Raises `ValueError` for an open quote."""
    stream = StringIO(text)
    reader = shlex.shlex(stream, posix=True)
    reader.whitespace_split, reader.commenters = True, ""
    word = reader.get_token() or ""
    return word, stream.read().lstrip()


def here(words: Iterable[str], session: str | None, team: str | None) -> list[str]:
    """Build the program's arguments for a typed command: with chat's session and team unless others were typed."""
    word, *rest = words
    args = [*WORDS[word], *rest]
    command, behind = program().get_command(None, args[0]), 1
    if inner := getattr(command, "commands", {}).get(args[1] if len(args) > 1 else ""):
        command, behind = inner, 2  # whose options stand behind it
    known = {name for parameter in (command.params if command else ()) for name in parameter.opts}
    for option, value in (("--session", session), ("--team", team)):
        whole = option == "--session" and args[0] == "usage" and has("--all", args)  # which excludes it
        if value and args[0] in TAKERS[option] and option in known and not has(option, args) and not whole:
            args[behind:behind] = [option, value]
    return args


def opens(words: Sequence[str]) -> bool:
    """Whether the command may name a conversation to open, as `/sessions s1` and `/resume s1`."""
    if words[0] not in ("sessions", "resume") or len(words) != 2 or words[1].startswith("-"):
        return False
    return words[1] not in getattr(program().get_command(None, words[0]), "commands", ())


def needs_conversation(words: Sequence[str]) -> bool:
    """Whether the command acts on the conversation of the chat, and cannot begin it."""
    word = words[0]
    looks = word in ("task", "todo") and (len(words) == 1 or has("--clear", words) or words[1] in ("done", "clear"))
    if (word in BEGINS and not looks) or (word in OF_ALL and not has("--from-session", words)):
        return False
    return "--help" not in words and not has("--session", words) and has("--session", here(words, "its name", None))


def run_command(words: Sequence[str], session: str | None, team: str | None) -> int:
    """Run the command as the program itself would. Its errors are one line, and it never ends chat.

    It suggests commands in the form for chat, without options for session and team.
    """
    args = here(words, session, team)
    TYPED.set(here(words, None, None))
    TYPED_HERE.set(in_chat)
    try:
        with reported(args, hints=False) as ending:
            try:
                ending.take(program()(meant(args), prog_name="teamchat", standalone_mode=False))
            except (KeyboardInterrupt, typer.Abort):
                print()
                ending.code = ExitCode.INTERRUPTED
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else ExitCode.USAGE
    return ending.code


NARROWEST = 20  # columns of an explanation
KEYS = (
    ("Enter", "sends; while members work, queues the message for the next turn"),
    ("Ctrl-J", "begins a new line; Alt-Enter, Shift-Enter, \\ Enter, too"),
    ("Esc", "stops the turn that runs; twice at an empty prompt: /undo"),
    ("Ctrl-C", "clears the text; stops the turn; a second one the queue, too"),
    ("Ctrl-D", "leaves; in a turn it asks once"),
    ("↑", "takes the last queued message back; what you typed before"),
    ("Ctrl-R", "searches what you typed before"),
    ("Tab", "completes members and files after @, and commands after /"),
    ("Ctrl-G", "opens the text in $EDITOR (Ctrl-X Ctrl-E, too)"),
    ("Ctrl-T Ctrl-O", "/todo, /show of the last turn"),
    ("Ctrl-Z", "suspends chat; fg continues it"),
)
GROUPS = {
    "conversation": ("new", "sessions", "search", "branch", "clear", "quit", "exit"),
    "send": ("send", "run", "check"),
    "go on, or stop": ("resume", "retry", "stop"),
    "what was said": ("log", "status", "show", "report", "compare", "export"),
    "files": ("diff", "undo", "redo", "merge", "worktrees", "until"),
    "what they know": ("task", "todo", "learn", "compact", "summary"),
    "their sessions": ("open", "adopt"),
    "team": ("team", "model", "hosts", "trust", "doctor"),
    "cost": ("usage", "cost"),
}
"""The commands of chat as `/help` lists them, by what they are about."""


def keys() -> Iterator[str]:
    """List the keys of the prompt, wrapped for the terminal."""
    return _in_columns(KEYS)


def print_help() -> None:
    """Print the commands of chat, wrapped for the terminal."""
    rows = [(label, " ".join(f"/{word}" for word in words)) for label, words in GROUPS.items()]
    rows += [("@NAME", "at the beginning of a line sends it to that member; @max+sarah to both at once")]
    rows += [("help", "/help COMMAND explains one; ? and Enter shows the keys")]
    print(*_in_columns(rows), sep="\n")


def _in_columns(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    rows = list(rows)
    column = max(len(label) for label, _ in rows) + 2
    width = max(get_terminal_size().columns - column - 3, NARROWEST)
    for label, does in rows:
        first, *more = wrapped(does, width)
        yield f"  {label:{column}}{first}"
        yield from (f"  {'':{column}}{line}" for line in more)


def explained(words: Sequence[str]) -> bool:
    """Return whether chat itself has the help that was asked for, and print it."""
    word = SAME.get(words[0], words[0]) if len(words) == 1 else ""
    if not words:
        print_help()
    elif word in OF_CHAT:
        print(f"  /{word}  {OF_CHAT[word]}")
    elif word in WORDS and word not in COMMANDS:
        print(f"  /{word} is /{' '.join(WORDS[word])}")
    else:
        return False
    return True


def models_of(team: Team) -> Iterator[str]:
    """Yield for each agent of the team the line of the team file that says its model, or what would say it."""
    for member in team.ai_members:
        yield f"{member.name}: {_model_of(team, member)}"


def how_to_set(model: str, team: Team) -> str:
    """Say what to write into the team file for that model: for the lead if it runs on a CLI that takes one."""
    agents = sorted(team.ai_members, key=lambda one: (_cli_of(team, one) is None, one.name != team.lead))
    name = next((member.name for member in agents), "NAME")
    file = team.path.name if team.path else "teamchat.toml (teamchat init writes one)"
    key = f'model = "{model}" under [[members]] name = "{name}" in {file}'
    return f"chat sets no model: {key} does, from the next message on"


def _cli_of(team: Team, member: Member) -> str | None:
    """Return the vendor's CLI that the member runs on, if it is one."""
    return team.agent_of(member).type.runner.vendor


def _model_of(team: Team, member: Member) -> str:
    file = team.path.name if team.path else "a team file (teamchat init writes one)"
    if team.path and member.model:
        key = f'model = "{member.model}"'
        with contextlib.suppress(OSError, ValueError):
            if line := line_in_file(f"members '{member.name}': model: ", read_regular_text(team.path)):
                return f"{key} is line {line} of {file}"
        return f"{key} of {file}"
    if cli := _cli_of(team, member):
        key = f'model = "..." under [[members]] name = "{member.name}"'
        return f"no model in {file}; {cli} chooses: {key} sets it"
    return f"no model in {file}; the command of [agents.{team.agent_of(member).name}] chooses"


def in_chat(commands: str) -> str:
    """Write commands of the command line as typed in chat, where there is one; the others stay as they are."""
    lines: list[str] = []
    for line in commands.splitlines():
        program_name, _, rest = line.partition(" ")
        word, _, options = rest.partition(" ")
        fits = program_name == "teamchat" and word in COMMANDS and word not in OUTSIDE and "&&" not in line
        lines.append(f"/{word} {options}".rstrip() if fits else line)
    return "\n".join(lines)


def options_in_chat(text: str) -> str:
    """Rewrite an error about a typed message, with the options of `send` as typed in chat."""
    return text.replace("(--anyway sends", "(/send --anyway sends").replace("--to ", "@")


def named_in_chat(text: str) -> str:
    """Rewrite a warning such as `1 file changed: teamchat diff 2, teamchat undo 2` with commands as typed in chat."""
    return named(text, in_chat)
