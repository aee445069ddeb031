"""The receipt of a turn, for a person and as JSON.

Finds the keys of the team file that would allow a member's denied actions.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from teamchat.assemblers.parts import SUMMARY, Trimmed
from teamchat.assemblers.truncation import approx_tokens
from teamchat.cli.output.lines import duration, moment, part_name, plural
from teamchat.cli.output.patch import MARKS, counted
from teamchat.core.agents import AGENT_TYPES
from teamchat.core.receipt import Outcome, Setup
from teamchat.core.store.turn_events import ABORTED, StoredEvent
from teamchat.core.store.turns import Turn
from teamchat.core.text.clean import printable, visible
from teamchat.patterns import regex
from teamchat.runners import git_server
from teamchat.runners.agent_events import Denied, FailureKind, Usage
from teamchat.runners.untrusted.file_changes import FileChange, NoCheckpoint
from teamchat.runners.untrusted.json import one_line

COLUMN = 12  # the column of values, and of what was done at a time
TRY = f"  {'try':<9} "
LONGEST_WORD = 200  # characters
LONGEST_OUTPUT = 100  # characters of a failed tool's output
SHOWN = {
    "ToolCall": "{name} {summary}",
    "Denied": "denied: {tool} {detail}",
    "Question": "asked its user: {text}",
    "Retry": "tried again: {reason}",
    "Note": "{text}",
}


def receipt_fields(
    turn: Turn, prompt: bytes, system: str | None, partial: str, summary: str | None, *, abandoned: bool
) -> dict[str, Any]:
    from teamchat.core.turn.lines import outcome_fields  # only `show --json` needs the lines

    return {
        "turn": turn.number,
        "member": turn.member,
        "route": turn.route,
        "agent": turn.agent,
        "status": turn.status,
        "abandoned": abandoned,
        "undone": turn.undone is not None,
        "started_at": turn.started_at,
        "shown_through": turn.shown_through,
        "vendor_session": turn.vendor_session,
        "setup": {name: value for name, value in to_builtins(turn.setup).items() if name != "row"},
        "prompt": prompt.decode(errors="replace"),
        "system": system,
        "outcome": turn.outcome and {**outcome_fields(turn, turn.outcome), "ran": to_builtins(turn.outcome.ran)},
        "partial": partial,
        "summary": summary,
    }


def receipt_lines(
    turn: Turn, events: Iterable[StoredEvent], place: Callable[[str], str], *, left: str | None
) -> Iterator[str]:
    """Write the receipt of a turn, for a person.

    `place` adds team and session to a command. `left` says what became of a turn that no process runs any more.
    """
    undone = ", undone" if turn.undone is not None else ""
    yield f"turn {turn.number} · {turn.who} ({turn.agent}) · {left or turn.status}{undone}"
    if left:
        yield f"{TRY}{place('teamchat resume')}"
    for name, value in (*_setup(turn, as_it_ran(turn)), *(_outcome(turn, turn.outcome, place) if turn.outcome else ())):
        yield f"  {name:<9} {visible(value)}"
    calls: dict[object, str] = {}
    for event in events:
        at, data = event.at, event.data
        if event.type in SHOWN:
            words = SHOWN[event.type].format(**data)
            if event.type == "ToolCall":
                calls[data.get("id")] = words
            yield visible(f"  {at:7.1f}s  {words}".replace("\n", " "))
        elif event.type == "ToolResult":
            call = calls.get(data.get("id"), "a tool")
            output = one_line(str(data.get("output") or ""), LONGEST_OUTPUT)
            if data.get("output") == ABORTED:
                yield f"  {at:7.1f}s  {ABORTED}"
            elif data.get("failed"):
                yield visible(f"  {at:7.1f}s  failed: {call}{output and f': {output}'}")


def partial_head(turn: Turn) -> str:
    """Write the heading of a turn's unfinished text."""
    if turn.status == "running":
        return "  its text so far:"
    whole = turn.status == "done"  # such a turn looked for lessons
    return f"  {'the answer' if whole else 'partial text'} (never a message, never in a prompt):"


SUMMARY_HEAD = "  the summary, which prompts have instead of the older messages:"


def _setup(turn: Turn, setup: Setup) -> Iterator[tuple[str, str]]:
    yield "why", setup.why + (f", attempt {setup.attempt}" if setup.attempt > 1 else "")
    if turn.route is None:
        yield "covers", f"the messages up to {setup.answers}"
    else:
        written = f", written for {setup.asked_in}" if setup.asked_in else ""
        yield "answers", f"{setup.answers}{written}, for the request {setup.request}"
    yield "started", moment(turn.started_at)
    if setup.host:
        yield "host", host_in_words(turn, setup.host)
    yield "access", f"{setup.access}: {setup.access_note}"
    if setup.without:
        yield "without", f"against plain {turn.agent}: {', '.join(setup.without)}"
    system = f" and {setup.system_bytes:,} bytes of system text (--system)" if turn.system_key else ""
    place = "as its last argument" if setup.row and setup.row.prompt == "argument" else "on stdin"
    yield "sent", f"{setup.stdin_bytes:,} bytes {place} (--prompt){system}"
    if setup.memory != "fresh":
        yield "memory", memory_in_words(setup)
    yield from _shown(setup)
    if setup.argv:
        yield "ran", shlex.join(short(word) for word in setup.argv)
        yield "in", setup.cwd
    for name, new in setup.env.items():
        yield "env", f"without {name}" if new is None else f"{name}={new}"


def as_it_ran(turn: Turn) -> Setup:
    """Return the turn's setup; for a turn on a host, with its command, environment and folder there."""
    ran = turn.outcome.ran if turn.outcome else None
    if ran is None or not ran.executor:
        return turn.setup
    note = ran.access_note or turn.setup.access_note
    return replace(turn.setup, argv=ran.argv, env=ran.env, cwd=ran.cwd, access_note=note)


def host_in_words(turn: Turn, host: str) -> str:
    """Name the host, with the known facts of the turn there: `gpu1 (teamchat 0.1.0)`."""
    ran = turn.outcome.ran if turn.outcome else None
    if turn.outcome and (ran is None or not ran.executor):
        return f"{host}, where it never began"
    return f"{host} (teamchat {ran.teamchat})" if ran and ran.teamchat else host


def memory_in_words(setup: Setup) -> str:
    """Say whether the turn continued the CLI's session, and what that saved; else why it began a fresh one."""
    if setup.adopted:
        return f"{setup.memory}, continues a copy of {setup.adopted}, which a person began"
    if setup.resumes is None:
        return f"{setup.memory}, a fresh session: {setup.fresh_because}"
    process = " in the process of an earlier turn" if setup.same_process else ""
    moved = "; a person continued it by hand since then" if setup.opened else ""
    if setup.lost:
        moved += f"; it had lost {setup.lost_in_words}, beside which somebody continued it, and is shown it again"
    return (
        f"{setup.memory}, continues {setup.resumes}{process}; a fresh one would take {setup.fresh_bytes:,} bytes{moved}"
    )


WHY = {
    "system": "its own instructions, and how to hand over",
    "task": "what the team works on",
    "experience__context": "lessons of this workspace that fit",
    "knowledge__context": "files of the team that fit",
    "todo__context": "the open todos",
    "compression__context": "a summary of messages that are no longer quoted",
    "differences__context": "what the judged or reviewed work changed in the files",
    "results__context": "what checks and reviewers said",
    "request": "the person's request, which is not in the history",
    "turn": "which message it answers, and for which request",
    "message": "what it answers",
}


def block_lines(setup: Setup) -> Iterator[str]:
    """List the parts of the prompt, each with its size and reason."""
    for block in setup.blocks:
        why = plural(block.messages, "message") if block.name == "history" else WHY[block.name]
        yield f"{part_name(block.name):<11} {block.bytes:>9,} bytes {approx_tokens(block.bytes):>8,} tokens  {why}"


def cut_lines(cut: Trimmed) -> Iterator[str]:
    """List the parts that were left out or cut, each with the reason."""
    if cut.layers:
        yield f"without {', '.join(map(part_name, cut.layers))} (the budget)"
    if cut.history_messages:
        yield f"{plural(cut.history_messages, 'old message')} (the budget)"
    if cut.message_bytes or cut.request_bytes:
        yield f"{cut.message_bytes + cut.request_bytes:,} bytes of text (the budget)"
    if cut.long_messages:
        yield f"the middle of {plural(cut.long_messages, 'long message')} (max_message_tokens)"


def short(word: str) -> str:
    """Shorten a long word of a command line (the system text) to its beginning."""
    return word if len(word) <= LONGEST_WORD and "\n" not in word else f"{word.splitlines()[0][:40]}…"


def _shown(setup: Setup) -> Iterator[tuple[str, str]]:
    """List the parts of the prompt besides the messages, and omitted or removed text."""
    shown = {"images": setup.images} if setup.images else {}
    for layer, names in (shown | setup.sources).items():
        yield layer.removesuffix("__context"), ", ".join(names)
    for block in setup.blocks:
        if block.name == SUMMARY:
            yield "summary", f"{block.bytes:,} bytes in place of older messages"
    for line in cut_lines(setup.trimmed):
        yield "cut", line
    if setup.inert_mentions:
        yield "inert", f"{plural(setup.inert_mentions, 'mention')} in others' text made inert"
    if setup.slash:
        yield "command", setup.slash
    if setup.redacted:
        yield "redacted", f"{plural(setup.redacted, 'secret')} in what others said"


def _outcome(turn: Turn, outcome: Outcome, place: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    if outcome.failure:
        if outcome.failure.kind is FailureKind.STOPPED:
            yield "stopped", "its process is decided without it"
        else:
            yield "failed", f"{outcome.failure.reason} [exit code {outcome.code.value}]"
        hint = outcome.failure.hint
        yield from (("try", command) for command in (place(hint).splitlines() if hint else ()))
    elif turn.route is not None:
        yield "reply", outcome.reply or ""
    first = f", first byte after {duration(outcome.first_byte_s)}" if outcome.first_byte_s is not None else ""
    yield "took", f"{'unknown' if outcome.seconds is None else duration(outcome.seconds)}{first}"
    if outcome.model:
        yield "model", outcome.model
    if outcome.version:
        yield "version", outcome.version
    yield "tokens", _usage(outcome.usage)
    yield "tools", _tools(turn, outcome)
    for child in outcome.children:
        yield "ran", f"the conversation {child.session}: {child.used}"
    if outcome.denied:
        allow = turn.type.allow != "refused"
        keys = keys_for(outcome.denied, turn.setup.access_note, _servers(turn), allow=allow)
        yield "allow", f"give it more with {keys} in the team file, then: teamchat trust"
    yield from file_lines(outcome)
    # The commands that show and undo what the turn changed in the files.
    diff, undo = place(f"teamchat diff {turn.number}"), place(f"teamchat undo {turn.number}")
    if broken := outcome.broken_access(turn.setup.access):
        yield "access", f"{broken}: {diff}, {undo}"
    elif outcome.known_changes and outcome.known_changes.count and turn.undone is None:
        yield "try", diff
        yield "try", undo
    if outcome.marked:
        yield "runs", outcome.marked
    for text in outcome.notes:
        yield "note", text
    if outcome.failure and outcome.stderr_tail.strip():
        yield "stderr", outcome.stderr_tail.strip().splitlines()[-1]


def file_lines(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """List the files that a turn changed, and say how teamchat knows."""
    changes, seen = outcome.known_changes, set(outcome.files)
    if changes:
        for change in changes.files:
            yield "changed", _change(change, reported=change.path in outcome.reported)
        if changes.more:
            yield "changed", f"and {plural(changes.more, 'file')} more"
        if changes.shared_with and changes.files:
            yield "shared", f"turn {', '.join(map(str, changes.shared_with))} worked in the same files meanwhile"
        if others := [path for path in outcome.reported if path not in seen]:
            yield "reported", f"{', '.join(others)} (unchanged again, ignored by git or elsewhere)"
        if changes.left_out:
            yield "unseen", f"{', '.join(changes.left_out[:5])} (too large, not readable, or of another repository)"
        if changes.slow:
            yield "slow", changes.slow
    elif isinstance(outcome.changes, NoCheckpoint):
        paths = ", ".join(outcome.files) or "none"
        yield "files", f"{paths} (as its CLI reports: {outcome.changes.reason})"
    elif outcome.files:
        yield "files", ", ".join(outcome.files)


def _change(change: FileChange, *, reported: bool) -> str:
    how = "" if reported else "not reported by its CLI"
    return counted(printable(change.path), change.added, change.removed, MARKS[change.what], how)


def _servers(turn: Turn) -> Collection[str]:
    """List the MCP servers that the user has set up for the turn's CLI; empty for an unknown program.

    Servers on a host are not known here.
    """
    if turn.setup.host:
        return ()
    runners = (row.runner for like, row in AGENT_TYPES.items() if like == turn.agent)
    return next((runner.servers(Path(turn.setup.cwd), os.environ) for runner in runners), ())


def _tools(turn: Turn, outcome: Outcome) -> str:
    """Count the tool calls: `3 used, 1 failed, 0 denied`. Without failures, `failed` is left out."""
    used = f"{outcome.tools} used" if turn.type.reports_tools else "used unknown"
    failed = f", {outcome.failed_tools} failed" if outcome.failed_tools else ""
    denied = "denied unknown" if outcome.denied is None else f"{len(outcome.denied)} denied"
    return f"{used}{failed}, {denied}"


def _usage(usage: Usage | None) -> str:
    if usage is None:
        return "unknown"
    numbers = {"in": usage.input_tokens, "cached": usage.cached_tokens, "out": usage.output_tokens}
    shown = (f"{name} {'unknown' if number is None else f'{number:,}'}" for name, number in numbers.items())
    cost = "cost unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    return f"{', '.join(shown)}, {cost}" + (" (over its whole vendor session)" if usage.cumulative else "")


_WEB = frozenset({"WebFetch", "WebSearch", "web_fetch", "google_web_search", "web_search"})
_SHELLS = frozenset({"Bash", "run_shell_command", "command_execution"})
_GIT = regex(r"(?:^|[;&|(])\s*git\s")
_ODD = regex(r"[^A-Za-z0-9_-]")  # these become `_` in the names of a server's tools
_SERVERS = "MCP servers "  # stands in the note before the names of the member's servers
_OTHERWISE = "access or allow"


def keys_for(denied: Iterable[Denied], note: str, servers: Collection[str] = (), *, allow: bool = True) -> str:
    """Name the keys, each as the team file spells it. `allow` is False where the CLI takes no such key.

    `note` is the receipt's text on the member's tools. `servers` are the MCP servers that the user has set up: a tool's
    name does not show where its server's name ends. A key that the member already has is not proposed, whatever the
    reason of the denial.
    """
    there = set(note.rpartition("; ")[2].replace(_SERVERS, "").split(", "))
    keys = dict.fromkeys(key for denial in denied for key in _keys(denial, there, servers))
    return " or ".join("access" if key == _OTHERWISE and not allow else key for key in keys)


def _keys(denied: Denied, there: set[str], servers: Collection[str]) -> Iterator[str]:
    if denied.tool in _WEB and "web" not in there:
        yield "web = true"
    elif denied.tool in _SHELLS and _GIT.search(denied.detail) and "git" not in there:
        yield "git = true"
    elif denied.tool.startswith("mcp_"):
        yield _key_of_server(denied.tool, there, servers)
    else:
        yield _OTHERWISE


def _key_of_server(tool: str, there: set[str], servers: Collection[str]) -> str:
    known = sorted({*servers, *there, git_server.NAME}, key=len, reverse=True)
    server = next((name for name in known if tool.startswith(_beginnings(name))), None)
    if server is None:
        return "mcp"
    if server == git_server.NAME:
        return _OTHERWISE if "git" in there else "git = true"
    return _OTHERWISE if server in there else f"mcp = [{json.dumps(server, ensure_ascii=False)}]"


def _beginnings(server: str) -> tuple[str, str]:
    """Return the beginnings of the tool names of Claude and Gemini that a key allows."""
    name = _ODD.sub("_", server)
    return f"mcp__{name}__", f"mcp_{name}_"
