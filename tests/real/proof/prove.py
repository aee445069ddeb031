"""Proves every installed CLI: a few real turns of each against a scripted model, all CLIs at the same time.

Each CLI has its own home and workspace in a temporary folder, a model on loopback, and fake keys.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from teamchat.core.agents import AGENT_TYPES
from teamchat.core.doctor.checks import DoctorCheck, not_installed
from teamchat.core.doctor.versions import Ask, check_version
from teamchat.core.errors import StoreError
from teamchat.core.files.whole_files import temporary_folder
from teamchat.core.team.team import BUILTIN_AGENTS, INSTALL
from teamchat.runners.agent_events import ToolResult
from teamchat.runners.base import Limit, Runner
from tests.real.model.replies import Reply, Request
from tests.real.model.selftest import NOTE
from tests.real.model.server import ModelServer, system_text
from tests.real.proof import findings as rows
from tests.real.proof.bench import HANGING, SYSTEM, Bench, make_home, trying_to_write
from tests.real.proof.findings import trapped
from tests.real.proof.watch import CLOCKS

LONG_SYSTEM = "Say nothing that is not so.\n" * 4_000  # too long for an argument, so it is passed in a file
PROMPT = (
    "The first line.\n\n-p --help\n/help\n@nobody @note.txt foo@example.org\n!ls $HOME `id` #note\n"
    "\0 \x07 \x1b[31m \x7f \r\n \r alone, 你好，世界 👩‍👩‍👧‍👦 é \u2028\u2029 \U0010ffff, and spaces at the end  \n"
)
Tell = Callable[[DoctorCheck], None]


async def prove(path: str, ask: Ask, tell: Tell) -> None:
    """Prove every built-in CLI on `path`, which is a PATH. `tell` receives the findings about one CLI after another.

    Raises `StoreError` or OSError when no temporary folder can be made.
    """
    found = {spec.name: shutil.which(spec.command[0], path=path) for spec in BUILTIN_AGENTS.values()}
    proofs = {
        name: asyncio.ensure_future(_prove(name, program, path, ask)) for name, program in found.items() if program
    }
    try:
        for name in found:
            checks = await proofs[name] if name in proofs else [not_installed(INSTALL[name], needed=not proofs)]
            for check in checks:
                tell(replace(check, member=name))
    finally:
        for proof in proofs.values():
            proof.cancel()
        await asyncio.gather(*proofs.values(), return_exceptions=True)


async def _prove(name: str, program: str, path: str, ask: Ask) -> list[DoctorCheck]:
    runner = AGENT_TYPES[name].runner
    with temporary_folder("doctor") as folder, ModelServer() as server:
        bench = Bench(runner, server, make_home(folder, server, path, name), folder)
        version = await asyncio.to_thread(check_version, name, program, runner, bench.env, ask, CLOCKS.first_byte_s)
        proved = [] if version.state == "failed" else await _rows(bench)
    hint = f"{INSTALL[name]}@{AGENT_TYPES[name].row.proven[-1]}"
    checks = [replace(version, hint=None) if version.state == "warning" else version, *proved]
    return [replace(check, hint=hint) if check.state == "failed" and check.hint is None else check for check in checks]


async def _rows(bench: Bench) -> list[DoctorCheck]:
    """A row for everything relied on, in the order of `rows.ORDER`; "unknown" if the proof did not get that far."""
    found: dict[str, DoctorCheck] = {}
    absent = rows.untried
    try:
        async for check in _turns(bench):
            found[check.what] = check
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 (whatever a CLI does, the other rows and CLIs are told)
        absent = partial(rows.not_proven, error=error)
    only = {
        "stays": bench.can_stay,
        "later": bench.can_stay,
        "keywords": bool(bench.test.keywords),
        "dotenv": bench.test.reads_dotenv,
    }
    expected = [what for what in rows.ORDER if only.get(what, True)]
    return [found.get(what) or absent(what) for what in expected if what in found or what != "time"]


async def _turns(bench: Bench) -> AsyncIterator[DoctorCheck]:
    """Run the turns and return their findings."""
    began, runner, test = time.monotonic(), bench.runner, bench.test
    said = runner.prepare(PROMPT, typed=range(0), exists=lambda path: path == NOTE).stdin
    with trapped(bench.folder / "traps", bench.work, bench.home, test) as traps:
        small, small_asked = await bench.turn(
            bench.job(memory="resume"),
            said,
            [Reply("Let me look.", "I should look.", (test.looking(),)), Reply("I looked.")],
        )
    yield rows.events(small, test)
    if small.is_hopeless:
        yield rows.flags([("read", small)])
        return
    for check in rows.left_alone(traps, small_asked):
        yield check
    assert runner.limit
    refusal = runner.refusal("full", bench.env)
    runs = AGENT_TYPES[bench.vendor].allow != "refused"
    most = bench.job(system_text=LONG_SYSTEM, access="edit" if refusal or not runs else "full", budget_usd=1.0)
    full = _full(runner.limit)
    large, large_asked = await bench.turn(most, full, [Reply("It is long.")])
    yield rows.stdin([(said, small, small_asked), (full, large, large_asked)], runner.limit)
    for check in rows.quotes_are_inert(await bench.plain_and_quoting(), test.keywords):
        yield check
    target = bench.work / "made.txt"
    tries = trying_to_write(test, target)
    going_on = bench.job(memory="resume", resumes=small.end.vendor_session)
    refused, refused_asked = await bench.turn(going_on, b"Write a file.", tries)
    made = (target, target.with_name(f"{target.name}.shell"))
    yield rows.session_continues(small, refused, refused_asked, said.decode())
    expanded = bench.work / "expanded.txt"
    expands = [Reply(tools=(test.running(f"echo $(echo text) > {expanded}"),)), Reply("I tried.")]
    tried, _ = await bench.turn(bench.job(access=most.access), b"Expand.", expands)
    untrue = not expanded.exists() and any(isinstance(event, ToolResult) and not event.failed for event in tried.events)
    yield rows.denials(refused, refused_asked, len(tries) - 1, made, runner, untrue=untrue)
    waits = [Reply("Let me wait.", tools=(test.running(" ".join(HANGING)),)), Reply(ending="stall")]
    running = bench.job(access="edit" if runs else "full", allow=(HANGING[0],) * runs, project_settings=True)
    hanging, _ = await bench.turn(running, b"Wait.", waits, hangs=True)
    yield rows.stops_in_a_tool(hanging, runner, HANGING[0])
    yield rows.flags(
        [("read", small), (most.access, large), (running.access, hanging), ("a second turn", refused)],
        refusal,
        _unheard(runner, {SYSTEM: small_asked, LONG_SYSTEM: large_asked}),
    )
    if bench.can_stay and small.end.failure is None:  # else nothing shows where a turn ends
        turns, runs = await bench.turns_of_one_process()
        yield rows.stays(turns, runs)
        yield rows.later(turns[0])
    yield rows.turn_duration(small, time.monotonic() - began)


def _unheard(runner: Runner, given: Mapping[str, Sequence[Request]]) -> list[int]:
    """The lengths of the system texts that were passed by a flag and are in no request of the model."""
    if not (runner.sessions and runner.sessions.system_each_time):  # the prompt contains it
        return []
    return [len(text) for text, asked in given.items() if asked and text.strip() not in system_text(asked[0])]


def _full(limit: Limit) -> bytes:
    """A prompt of exactly the maximum size."""
    line = "0123456789abcde\n" if limit.unit == "bytes" else "0123456789äöü漢字\n"
    return (line * (limit.size // len(line) + 1))[: limit.size].encode()
