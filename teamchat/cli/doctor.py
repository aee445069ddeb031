from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Annotated

import typer
from msgspec import to_builtins

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import note
from teamchat.cli.startup.interrupts import raise_again
from teamchat.cli.startup.options import JsonOption, TeamOption
from teamchat.cli.startup.workspace import find_root, find_team, need_person, need_trust
from teamchat.core.conversation.permission import trust_store
from teamchat.core.dispatch.look import check_hosts
from teamchat.core.doctor.ask import QUESTION, ask_members
from teamchat.core.doctor.checks import DoctorCheck, exit_code
from teamchat.core.doctor.examine import examine
from teamchat.core.errors import ExitCode, UsageError
from teamchat.core.files.folders import config_dir
from teamchat.core.team.trust import require
from teamchat.core.text.clean import printable
from teamchat.runners.child.command import capture

MARKS = {"ok": "✓", "note": "·", "warning": "!", "unknown": "?", "failed": "✗"}
LiveOption = Annotated[
    bool, typer.Option("--live", help="Ask each member one short question on your own login. This costs money.")
]


StoreOption = Annotated[
    bool,
    typer.Option("--store", help="Check and back up this workspace's store; rescue what a damaged store still has."),
]


def doctor(
    team: TeamOption = None, live: LiveOption = False, store: StoreOption = False, as_json: JsonOption = False
) -> int:
    """Check programs, versions, logins, folders and the store. Only --live calls a model."""
    if store and live:
        raise UsageError("--store checks only the store; it excludes --live", "teamchat doctor --store")
    report = Report(as_json)
    raise_again()
    if store:
        from teamchat.core.doctor.stored import examine_store

        report.all(examine_store(find_root(team)))
        return report.end()
    if live:
        return finished(ask(team, report), report)

    report.all(examine(team, Path.cwd(), config_dir(), os.environ, capture, check_hosts))
    return report.end()


class Report:
    """Shows each finding as it comes. For a person the names form one column."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.checks: list[DoctorCheck] = []

    def __call__(self, check: DoctorCheck, width: int) -> None:
        self.checks.append(check)
        if self.as_json:
            write_line("check", **to_builtins(check))
        else:
            print(line(check, width), flush=True)

    def all(self, checks: Iterable[DoctorCheck]) -> None:
        findings = list(checks)
        width = max(len(check.member or "") for check in findings)
        for check in findings:
            self(check, width)

    def end(self, cut_short: ExitCode | None = None) -> ExitCode:
        code = cut_short or exit_code(self.checks)
        if self.as_json:
            write_line("result", code=int(code), outcome=code.name.lower())
        return code


async def ask(option: str | None, report: Report) -> None:
    need_person("members are asked whether they work")
    team = find_team(option)
    need_trust(team, give=False)
    names = [member.name for member in team.ai_members]
    if not names:
        raise UsageError("the team has no agent to ask", "teamchat team")
    twice = [member.name for member in team.ai_members if not member.host and team.agent_of(member).unproven]
    tries = f" and, of {', '.join(twice)}, an order to write a file in an empty folder," if twice else ""
    note(
        f"asks {', '.join(names)} on your own logins, which costs: one question of {len(QUESTION)} bytes each"
        f"{tries or ','} plus some thousand tokens that each CLI adds"
    )
    async for check in ask_members(team, os.environ):
        report(check, max(map(len, names)))
        require(team, trust_store())  # before the next one is asked


def finished(work: Coroutine[object, object, None], report: Report) -> ExitCode:
    """Do the work. SIGTERM and SIGHUP end it like Ctrl-C, so that no agent and no folder of it remains.

    A signal that the caller ignores stays ignored.
    """

    async def interruptible() -> None:
        task = asyncio.current_task()
        assert task
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await work

    try:
        asyncio.run(interruptible())
    except asyncio.CancelledError:
        return report.end(ExitCode.TERMINATED)
    except KeyboardInterrupt:
        return report.end(ExitCode.INTERRUPTED)
    return report.end()


def line(check: DoctorCheck, width: int) -> str:
    """Write a finding for a person, then the commands on lines of their own. `width` is that of the longest name."""
    text = printable(f"{MARKS[check.state]} {check.member or '':<{width}} {check.what:<7} {check.text}")
    return "\n".join([text, *(f"  try: {printable(command)}" for command in (check.hint or "").splitlines())])
