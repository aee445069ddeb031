"""The findings from a CLI's turns: each one passes, or says in one line what is wrong and what to do.

What a CLI must ignore in a read turn: a project's settings and `.env`, and the user's MCP servers.

Whatever acts makes a file of its own, or is in what the model receives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL

from msgspec import Struct

from teamchat.core.doctor.checks import DoctorCheck, State
from teamchat.core.errors import ExitCode
from teamchat.patterns import regex
from teamchat.runners.agent_events import FailureKind, Note, Text, ToolCall, ToolResult
from teamchat.runners.base import Limit, Runner
from teamchat.runners.untrusted.json import one_line
from tests.real.model.replies import Request
from tests.real.model.selftest import PLANTED, SelfTest
from tests.real.model.server import messages, prompt, system_text
from tests.real.model.table import SELF_TESTS
from tests.real.proof.watch import Observed

NO_TURN = "not known: no turn began"
UNTRIED = "not tried: the first turn failed"
ORDER = (
    *("flags", "events", "stdin", "project", "dotenv", "servers", "mentions", "keywords"),
    *("resume", "stays", "later", "stop", "denials", "time"),
)
MOST_NAMES = 5  # event names in one row
_FOLDER = regex(r"(?:teamchat|turn)-\w+")  # Codex tells its model which folders it may write


def flags(
    turns: Sequence[tuple[str, Observed]], refusal: str | None = None, unheard: Sequence[int] = ()
) -> DoctorCheck:
    """Whether the CLI starts with teamchat's options for each access, and obeys them.

    `refusal` says why full access is not tried. `unheard` has the lengths of system texts that never reached the
    model.
    """
    for access, turn in turns:
        if not turn.began:
            return _row("flags", "failed", f"does not start with teamchat's arguments for {access}: {_reason(turn)}")
    if unheard:
        return _row("flags", "failed", f"instructions of {unheard[0]:,} characters never reached the model")
    text = f"accepted for {', '.join(dict.fromkeys(access for access, _ in turns))}"
    return _row("flags", "ok", text + (f" (not tried: {refusal.partition(':')[0]})" if refusal else ""))


def events(turn: Observed, test: SelfTest) -> DoctorCheck:
    """Whether every event that teamchat reads came under its name, with the values that teamchat reads from it."""
    if not turn.began:
        return _row("events", "unknown", NO_TURN)
    missing = [name for name in test.needed_events if name not in turn.names]
    strange = [name for name in dict.fromkeys(turn.names) if name not in test.known_events.union(test.needed_events)]
    if missing:
        instead = f"; unknown ones came instead: {_named(strange)}" if strange else ""
        return _row("events", "failed", f"{_named(missing)} never came{instead}")
    if turn.end.failure:
        return _row("events", "failed", f"all came, but the turn {turn.end.failure.reason}")
    if unread := _unread(turn):
        return _row("events", "failed", f"all came, but without what teamchat reads from them: {', '.join(unread)}")
    if strange:
        return _row("events", "warning", f"understood; new ones came, which teamchat ignores: {_named(strange)}")
    return _row("events", "ok", f"understood, all {len(test.needed_events)} kinds", " ".join(test.needed_events))


def _unread(turn: Observed) -> list[str]:
    """What the runner should have read from a turn that thinks, speaks and uses a tool, and did not."""
    calls = {event.id for event in turn.events if isinstance(event, ToolCall)}
    results = {event.id for event in turn.events if isinstance(event, ToolResult)}
    usage = turn.end.usage
    learned = {
        "text": turn.had(Text),
        "tool calls": bool(calls),
        "tool results": bool(results) and results <= calls,
        "a session": turn.end.vendor_session is not None,
        "tokens": bool(usage and usage.input_tokens and usage.output_tokens),
    }
    return [name for name, there in learned.items() if not there]


def stdin(sent: Sequence[tuple[bytes, Observed, Sequence[Request]]], limit: Limit) -> DoctorCheck:
    """Whether each prompt arrived unchanged in the model's first request. The last prompt has the maximum size."""
    for given, turn, requests in sent:
        if not requests:
            if not turn.began:
                return _row("stdin", "unknown", NO_TURN)
            if given is sent[-1][0] and turn.end.failure and turn.end.failure.kind is FailureKind.TOO_LARGE:
                text = (
                    f"prompts arrive byte for byte, but this version refuses one of {limit.size:,} {limit.unit} itself"
                )
                return _row("stdin", "warning", text)
            text = f"a prompt of {len(given):,} bytes never reached the model: {_reason(turn)}"
            return _row("stdin", "failed", text)
        arrived = prompt(requests[0]).encode(errors="surrogatepass")
        if arrived != given:
            text = f"a prompt of {len(given):,} bytes reached the model as {len(arrived):,} others"
            return _row("stdin", "failed", text)
    text = f"prompts arrive byte for byte, up to {limit.size:,} {limit.unit}; larger ones are refused before they run"
    return _row("stdin", "ok", text, f"{limit.size} {limit.unit}")


def quotes_are_inert(asked: Sequence[tuple[str, Sequence[Request]]], keywords: Sequence[str]) -> list[DoctorCheck]:
    """Whether a prompt that only quotes mentions reached the model with nothing more than a prompt without mentions.

    `asked` has both prompts with the requests of their turns, `keywords` what the second one has of those.
    """
    names = ("mentions", *(("keywords",) if keywords else ()))
    if not all(requests for _, requests in asked):
        return [_row(name, "unknown", NO_TURN) for name in names]
    (_, plain), (said, quoting) = asked
    known = [_words(text) for text in (said, *(message.text for message in messages(plain[0])))]
    added = [message.text for message in messages(quoting[0]) if _words(message.text) not in known]
    wishes = [text for text in added if any(word in text.casefold() for word in keywords)]
    found = {"mentions": [text for text in added if text not in wishes], "keywords": wishes}
    return [_inert(name, found[name]) for name in names]


def _words(text: str) -> list[str]:
    """The words of a text without what differs from turn to turn: its folders, and so the order of a list of them."""
    return sorted(re.findall(r"\w+", _FOLDER.sub("", text)))


def _inert(what: str, added: Sequence[str]) -> DoctorCheck:
    quoted = "files, agents and skills" if what == "mentions" else "keywords"
    if added:
        return _row(what, "failed", f"{quoted} that others mention are acted on: {one_line(added[0], 80)!r}")
    return _row(what, "ok", f"{quoted} that others mention stay text")


def later(turn: Observed) -> DoctorCheck:
    """Whether a process that stays has no tool that acts after its turn. The model of `turn` called the known ones."""
    calls = {event.id: event.name for event in turn.events if isinstance(event, ToolCall)}
    done = [event for event in turn.events if isinstance(event, ToolResult) and event.id in calls]
    if not calls or len(done) < len(calls):
        return _row("later", "unknown", f"not known: the tools were not called ({_reason(turn)})")
    if acts := [calls[event.id] for event in done if not event.failed]:
        return _row("later", "failed", f"kept running, it may act after its turn: {', '.join(acts)}")
    return _row("later", "ok", f"nothing acts after its turn: no {', '.join(calls.values())}")


def left_alone(traps: Traps, asked: Sequence[Request]) -> Iterator[DoctorCheck]:
    """Whether a read turn obeyed no settings and no `.env` of its project, and started no server of the user."""
    told = "hooks and MCP servers of a project's settings"
    if traps.project:
        yield _row("project", "failed", f"{told} run without project_settings")
    else:
        yield _row("project", "ok", f"{told} do not run")
    if any(PLANTED in system_text(request) for request in asked):
        text = "a project's .env is loaded and can send the user's key elsewhere: remove it, or use another version"
        yield _row("dotenv", "failed", text)
    else:
        yield _row("dotenv", "ok", "a project's .env changes nothing")
    if traps.servers:
        yield _row("servers", "failed", "under read an MCP server of the user's starts, and can write anything")
    else:
        yield _row("servers", "ok", "under read no MCP server of the user's starts")


def session_continues(first: Observed, second: Observed, asked: Sequence[Request], said: str) -> DoctorCheck:
    """Whether a second turn continued the first one's session, so that its model received what was `said` again."""
    if first.end.vendor_session is None or not second.began:
        return _row("resume", "unknown", "not known: no session was begun" if second.began else NO_TURN)
    if second.end.failure and second.end.failure.kind is FailureKind.GONE:
        return _row("resume", "failed", f"a second turn {second.end.failure.reason}")
    if not (asked and said in [message.text for message in messages(asked[0])]):
        return _row("resume", "failed", "a second turn continued the session, but its model did not get the first")
    return _row("resume", "ok", "a second turn continues the session of the first")


def stays(turns: Sequence[Observed], runs: bool) -> DoctorCheck:
    """Whether one process answered two turns and was ready for more."""
    if ours := turns[-1].ours:
        return _row("stays", "unknown", f"not known: {ours}")
    if not turns[0].began:
        return _row("stays", "failed", f"does not start to be kept running: {_reason(turns[0])}")
    for turn, said in zip(turns, ("One.", "Two."), strict=False):
        if turn.end.text != said or turn.end.failure:
            return _row("stays", "failed", f"kept running, it did not answer {said!r}: {_reason(turn)}")
    if not runs:
        ended = "first" if len(turns) == 1 else "second"
        return _row("stays", "failed", f"kept running, it ended after its {ended} turn{_noted(turns[-1])}")
    return _row("stays", "ok", f"kept running, it answers a second turn in {turns[-1].end.exit.seconds:.1f} s")


def stops_in_a_tool(turn: Observed, runner: Runner, tool: str) -> DoctorCheck:
    """Whether stopping a turn that hangs in a tool ends it, with all processes of its tree."""
    if not turn.began:
        return _row("stop", "unknown", NO_TURN)
    if turn.stopped is None:
        return _row("stop", "failed", f"a turn that should hang ended by itself: {_reason(turn)}")
    stopped = turn.stopped
    if stopped.survivors:
        return _row("stop", "failed", f"a stopped turn left processes behind: {', '.join(stopped.survivors)}")
    text = f"a hanging turn ended in {stopped.seconds:.1f} s, and all its {len(stopped.tree)} processes"
    if turn.end.exit.code == -SIGKILL:
        return _row(
            "stop",
            "warning",
            f"{text}; on {runner.stop.signal.name} it did not end in {runner.stop.grace_s:g} s and was killed",
        )
    if tool not in stopped.tree.values():
        return _row("stop", "warning", f"{text}; none of them was a tool's, which it did not run")
    return _row("stop", "ok", text, f"{stopped.seconds:.1f}")


def denials(
    turn: Observed, requests: Sequence[Request], tries: int, written: Iterable[Path], runner: Runner, *, untrue: bool
) -> DoctorCheck:
    """Whether a read-only member wrote nothing when its model tried to, and the CLI reported the refusals.

    `untrue`: a shell command with an expansion is told as run, and it was not.
    """
    if not turn.began:
        return _row("denials", "unknown", NO_TURN)
    if files := [path.name for path in written if path.exists()]:
        text = f"under read it wrote {' and '.join(files)}: do not use this version where it must not write"
        return _row("denials", "failed", text)
    if untrue:
        return _row("denials", "failed", "a command with an expansion did not run and is told as run")
    if len(requests) <= tries:
        return _row("denials", "failed", f"the turn ended before it had tried to write: {_reason(turn)}")
    if turn.end.denied:
        return _row("denials", "ok", f"under read nothing was written; refusals reported: {len(turn.end.denied)}")
    if runner.reports_denials:
        return _row("denials", "failed", "under read nothing was written; but no refusal was reported")
    return _row("denials", "unknown", "under read nothing was written; it does not report refusals")


def untried(what: str) -> DoctorCheck:
    """The row of a check that would only have waited in vain."""
    return _row(what, "unknown", UNTRIED)


def not_proven(what: str, error: Exception) -> DoctorCheck:
    """The row of a check that raised an error itself."""
    return _row(what, "unknown", f"not known: the test broke off ({one_line(f'{type(error).__name__}: {error}')})")


def turn_duration(small: Observed, all_s: float) -> DoctorCheck:
    """How long a turn takes when its model answers at once."""
    text = f"{small.end.exit.seconds:.1f} s for a small turn, {all_s:.1f} s for all of these"
    return _row("time", "ok" if small.end.failure is None else "unknown", text, f"{small.end.exit.seconds:.1f}")


def _row(what: str, state: State, text: str, value: str | None = None) -> DoctorCheck:
    code = ExitCode.MEMBER_FAILED if state == "failed" else ExitCode.DONE
    return DoctorCheck(None, what, state, text, value, code=code)


def _reason(turn: Observed) -> str:
    return turn.end.failure.reason if turn.end.failure else f"it succeeded and answered {one_line(turn.end.text, 40)!r}"


def _noted(turn: Observed) -> str:
    """The turn's last note, after a colon: why it was ended although it had answered."""
    notes = [event.text for event in turn.events if isinstance(event, Note)]
    return f": {one_line(notes[-1])}" if notes else ""


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(f"`{one_line(name, 80)}`" for name in names[:MOST_NAMES]) + more


class Traps(Struct, frozen=True):
    """The folder in which each sprung trap leaves a file."""

    folder: Path

    @property
    def project(self) -> bool:
        return (self.folder / "project").exists()

    @property
    def servers(self) -> bool:
        return (self.folder / "server").exists()


@contextmanager
def trapped(folder: Path, work: Path, home: Path, test: SelfTest) -> Iterator[Traps]:
    """Set the traps for one turn, in the workspace and in the user's settings. Sprung traps leave files in `folder`."""
    folder.mkdir()
    told = ["touch", str(folder / "project")]  # of all vendors: a CLI may read another one's
    files = {path: text for each in SELF_TESTS.values() for path, text in each.traps(work, told).items()}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    users = home / test.settings
    before = users.read_text() if users.exists() else None
    users.parent.mkdir(parents=True, exist_ok=True)
    users.write_text(test.with_server(before, ["touch", str(folder / "server")]))
    try:
        yield Traps(folder)
    finally:
        for path in files:
            path.unlink()
        users.unlink() if before is None else users.write_text(before)
