from __future__ import annotations

import math
import os
import shlex
from typing import Any

from msgspec import to_builtins

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import without_line
from teamchat.cli.output.process_report import described
from teamchat.cli.startup.options import JsonOption, TeamOption
from teamchat.cli.startup.workspace import find_team
from teamchat.core.conversation.permission import trust_store
from teamchat.core.conversation.processes import process_of
from teamchat.core.doctor.parity import features_without
from teamchat.core.engine.workflow import NamedProcess
from teamchat.core.errors import UsageError
from teamchat.core.team.programs import Unusable, find_program, job_of, may
from teamchat.core.team.team import Member, Team
from teamchat.core.team.trust import trust_command
from teamchat.core.team.trust_needs import needs
from teamchat.core.text.clean import printable
from teamchat.runners.edits import in_words


def team(team: TeamOption = None, as_json: JsonOption = False) -> None:
    """Show the members: what each may read and do, and the CLI flags that enforce it."""
    current_team = find_team(team)
    standing = trust_store().standing(current_team)
    rows = [describe(current_team, member) for member in current_team.members]
    named = [shown_process(current_team, process) for process in current_team.processes.values()]
    if as_json:
        file = str(current_team.path) if current_team.path else None
        wants = [{"member": need.member, "key": need.key, "line": need.line} for need in needs(current_team)]
        write_line(
            "team",
            name=current_team.name,
            file=file,
            trusted=standing.trusted,
            needs=wants,
            fence=current_team.fence,
            members=rows,
            processes=named,
        )
        return
    origin = str(current_team.path) if current_team.path else "no team file: the installed CLIs are the team"
    asks = "" if standing.trusted else f", {standing.text.partition(' ')[2]}: {trust_command(current_team)}"
    print(printable(f"{current_team.name} ({origin}){asks}"))
    for need in needs(current_team):
        print(f"  {need.line}")
    if not current_team.fence:
        print("  fence is off: a text can pass for another speaker")
    for row in rows:
        print()
        for line in lines(row):
            print(printable(line))
    for process in named:
        print()
        print(printable(f"{process['name']} · {process['kind']}: {process['does'] or process['problem']}"))
        if process["prompt"]:
            print(printable(f"  prompt: {process['prompt']}"))


def shown_process(team: Team, named: NamedProcess) -> dict[str, Any]:
    """Describe a process of the team file for `--json`. `problem` says what the command line must add."""
    does, problem = None, None
    try:
        does = described(process_of(team, named.name))
    except UsageError as error:
        problem = str(error).removeprefix(named.name).removeprefix(":").strip()
    return {"name": named.name, "kind": named.kind, "does": does, "problem": problem, "prompt": named.prompt or None}


def describe(team: Team, member: Member) -> dict[str, Any]:
    """Describe a member for `--json`. A person has only a name and a title."""
    row: dict[str, Any] = {"name": member.name, "title": member.title, "type": member.type}
    if member.type == "human":
        return row

    agent = team.agent_of(member)
    runner = agent.type.runner
    job = job_of(member, agent, os.environ)
    command = runner.command(job)
    program = find_program(agent.command[0], {**os.environ, **command.env})
    of_host = _OF_A_HOST if member.host else {}
    return row | {
        "agent": agent.name,
        "program": None if isinstance(program, Unusable) else program,
        "problem": program.why if isinstance(program, Unusable) else None,
        "terminal": to_builtins(agent.terminal) if agent.terminal else None,
        "access": member.access,
        "may": may(member, agent),
        "edits": dict(runner.edits) if runner.edits and member.access == "edit" else None,
        "reads": runner.reads_note(job),
        "vendor": runner.vendor,
        "without": list(features_without(agent, job)),
        "lost": agent.row.lost if agent.row else "",
        "leaves": agent.row.leaves if agent.row else "",
        "memory": member.memory,
        "allow": list(member.allow),
        "web": member.web,
        "mcp": None if member.mcp is None else list(member.mcp),
        "git": member.git,
        "model": member.model,
        "cwd": str(member.cwd),
        "workspace": member.workspace,
        "argv": list(command.argv),
        "env": {**command.env, **dict.fromkeys(member.env, "(from the team file)")},
        "env_keep": list(member.env_keep),
        "instructions": {
            "own": member.system_instruction is not None,
            "file": str(member.instruction_file) if member.instruction_file else None,
        },
        "knowledge": list(member.knowledge),
        "clocks_s": {
            "first_byte": _limit(job.first_byte_s),
            "stall": _limit(member.stall_s or runner.stall_s),
            "timeout": member.timeout_s,
        },
        "host": list(member.host),
        **of_host,
    }


CLOCKS = {"first byte": "first_byte", "stall": "stall", "total": "timeout"}


def _limit(seconds: float) -> float | None:
    """Convert a clock for JSON: null if it never runs out."""
    return None if math.isinf(seconds) else seconds


def _clock(seconds: float | None) -> str:
    return "none" if seconds is None else f"{seconds:g} s"


_OF_A_HOST: dict[str, Any] = {
    "program": None,
    "problem": None,
    "terminal": None,
    "may": "if its host offers it, which bounds it",
    "edits": None,
    "reads": "its prompt, and what its host lets it read",
    "without": [],
    "lost": "",
    "leaves": "",
    "argv": [],
    "env": {},
}
"""Fields that the host's machine decides and this one does not know."""


def lines(row: dict[str, Any]) -> list[str]:
    """Describe a member in a few lines for a person."""
    title = f" · {row['title']}" if row["title"] else ""
    if row["type"] == "human":
        return [f"{row['name']}{title} · person"]
    problem = f" ({row['problem']})" if row["problem"] else ""
    named = [
        ("model", row["model"]),
        ("instructions", row["instructions"]["file"]),
        ("knowledge", ", ".join(row["knowledge"])),
        ("allow", ", ".join(row["allow"])),
    ]
    clocks = row["clocks_s"]
    worktree = " (a worktree of it)" if row["workspace"] == "worktree" else ""
    if terminal := row["terminal"]:
        typed = "" if terminal["exit"] is None else f", ended with {terminal['exit']!r}"
        named.append(("on a terminal", f"its prompt matches {terminal['prompt']!r}{typed}"))
    on = f" on {'any host' if row['host'] == ['any'] else ' or '.join(row['host'])}" if row["host"] else ""
    runs = "the command of its host, in the environment of its host" if on else shlex.join(row["argv"])
    return [
        f"{row['name']}{title} · {row['agent']}{on}{problem}",
        f"  access {row['access']}: {row['may']}",
        *(f"  {name}: {those}" for name, those in (in_words(row["edits"]) if row["edits"] else ())),
        f"  reads: {row['reads']}",
        *([f"  {without_line(row['vendor'], row['without'])}"] if row["without"] else ()),
        *(f"  {key}: {row[key]}" for key in ("lost", "leaves") if row[key]),
        f"  memory: {row['memory']}",
        *(f"  {name}: {value}" for name, value in named if value),
        f"  works in: {'the clone on its host of ' * bool(on)}{row['cwd']}{worktree}",
        f"  runs: {runs}",
        *(f"  with: {name}={value}" for name, value in row["env"].items()),
        f"  clocks: {', '.join(f'{name} {_clock(clocks[key])}' for name, key in CLOCKS.items())}",
    ]
