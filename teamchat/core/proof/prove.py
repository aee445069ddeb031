"""The proof of every installed CLI: a few real turns of each against a scripted model, all CLIs at the same time.

Each CLI has a home and a workspace of its own in a temporary folder, a model on loopback, and keys that open nothing.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from teamchat.core.agents import AGENT_TYPES
from teamchat.core.checks import Check, not_installed
from teamchat.core.proof import rows
from teamchat.core.proof.shapes import SHAPES
from teamchat.core.proof.tools import NOTE, SLEEP, looking, running, trying_to_write
from teamchat.core.proof.turn import CLOCKS, Observed, Watch, observe
from teamchat.core.scripted.home import MODELS, environment
from teamchat.core.scripted.protocol import Request, Vendor
from teamchat.core.scripted.reply import Reply
from teamchat.core.scripted.server import ModelServer
from teamchat.core.team import BUILTIN_AGENTS, INSTALL
from teamchat.core.versions import Ask, check_version
from teamchat.runners.base import Job, Limit, Runner

SYSTEM = "You are the prover."
LONG_SYSTEM = "Say nothing that is not so.\n" * 4_000  # more than an argument may have
PROMPT = (
    "The first line.\n\n-p --help\n/help\n@nobody @note.txt foo@example.org\n!ls $HOME `id` #note\n"
    "\0 \x07 \x1b[31m \x7f \r\n \r alone, 你好，世界 👩‍👩‍👧‍👦 é \u2028\u2029 \U0010ffff, and spaces at the end  \n"
)
Tell = Callable[[Check], None]
Progress = Callable[[str, str | None], None]
"""Told which CLI begins which step; None when it has gone through all."""


async def prove(path: str, ask: Ask, tell: Tell, progress: Progress) -> None:
    """Prove every built-in CLI on `path`, which is a PATH; `tell` gets the findings about one CLI after another.

    Raises `StoreError` or OSError when no temporary folder can be made.
    """
    found = {spec.name: shutil.which(spec.command[0], path=path) for spec in BUILTIN_AGENTS.values()}
    proofs = {
        name: asyncio.ensure_future(_prove(name, program, path, ask, progress))
        for name, program in found.items()
        if program
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


async def _prove(name: str, program: str, path: str, ask: Ask, progress: Progress) -> list[Check]:
    runner = next(row.runner for row in AGENT_TYPES.values() if row.runner.vendor == name)
    place = tempfile.TemporaryDirectory(prefix="teamchat-doctor-", ignore_cleanup_errors=True)
    with place as folder, ModelServer() as server:
        stand = _Stand(runner, server, _furnished(Path(folder), server, path), Path(folder))
        progress(name, "version")
        version = await asyncio.to_thread(
            check_version, name, program, runner, stand.env, stand.work, ask, CLOCKS.first_byte_s
        )
        checks = [version]
        if version.state != "failed":
            checks += await _turns(stand, lambda step: progress(name, step))
    progress(name, None)
    hint = f"{INSTALL[name]}@{runner.tested_version}"
    return [replace(check, hint=hint) if check.state == "failed" and check.hint is None else check for check in checks]


def _furnished(folder: Path, server: ModelServer, path: str) -> dict[str, str]:
    """The environment of a new home in `folder`, beside a workspace with a note in it."""
    (folder / "home").mkdir()
    (folder / "work").mkdir()
    (folder / "work" / NOTE).write_text("The word is XYLOPHONE.\n")
    return environment(folder / "home", server.url, path)


@dataclass(frozen=True, slots=True)
class _Stand:
    """One CLI and the world that it runs in."""

    runner: Runner
    server: ModelServer
    env: Mapping[str, str]
    folder: Path

    @property
    def vendor(self) -> Vendor:
        assert self.runner.vendor
        return self.runner.vendor

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def job(self, **changes: Any) -> Job:
        base = Job((self.vendor,), self.work, self.folder, SYSTEM, model=MODELS[self.vendor], env=self.env)
        return replace(base, **changes)

    async def turn(
        self, job: Job, stdin: bytes, replies: Sequence[Reply], *, hangs: bool = False
    ) -> tuple[Observed, list[Request]]:
        """Run a turn in which the model answers with `replies`; what was seen of it, and what the model was asked.

        One that `hangs` is stopped while its tool runs, or once the model is asked again because none did.
        """
        self.server.script(self.vendor, replies)
        before = len(self.server.turns(self.vendor))

        def stuck(tree: Mapping[int, str]) -> bool:
            return SLEEP[0] in tree.values() or len(self.server.turns(self.vendor)) > before + 1

        watch = Watch(self.runner, job, stdin, self.folder / "output", hangs=stuck if hangs else None)
        return await observe(watch), self.server.turns(self.vendor)[before:]


async def _turns(stand: _Stand, begins: Callable[[str], None]) -> list[Check]:
    """The turns, and what they prove."""
    began, runner, vendor = time.monotonic(), stand.runner, stand.vendor
    begins("a small turn")
    said = runner.prepare(PROMPT, own_from=len(PROMPT), exists=lambda path: path == NOTE).stdin
    small, small_asked = await stand.turn(
        stand.job(memory="resume"),
        said,
        [Reply("Let me look.", "I should look.", (looking(vendor),)), Reply("I looked.")],
    )
    if small.is_hopeless:
        first = [rows.flags({"read": small}, None), rows.events(small, SHAPES[vendor])]
        return [*first, *(rows.untried(what) for what in ("stdin", "resume", "stop", "denials"))]
    begins("a large prompt")
    assert runner.limit
    refusal = runner.refusal("full", stand.env)
    most = stand.job(system_text=LONG_SYSTEM, access="edit" if refusal else "full", budget_usd=1.0)
    full = _full(runner.limit)
    large, large_asked = await stand.turn(most, full, [Reply("It is long.")])
    begins("refusals")
    target = stand.work / "made.txt"
    tries = trying_to_write(vendor, target)
    going_on = stand.job(memory="resume", resumes=small.end.vendor_session)
    refused, refused_asked = await stand.turn(going_on, b"Write a file.", tries)
    begins("a hanging turn")
    waits = [Reply("Let me wait.", tools=(running(vendor, " ".join(SLEEP)),)), Reply(ending="stall")]
    editing = stand.job(access="edit", allow=(SLEEP[0],), project_settings=True)
    hanging, _ = await stand.turn(editing, b"Wait.", waits, hangs=True)
    made = (target, target.with_name(f"{target.name}.shell"))
    return [
        rows.flags({"read": small, most.access: large, "edit": hanging, "a second turn": refused}, refusal),
        rows.events(small, SHAPES[vendor]),
        rows.stdin([(said, small, small_asked), (full, large, large_asked)], runner.limit),
        rows.resume(small, refused, refused_asked, said.decode()),
        rows.stop(hanging, runner, SLEEP[0]),
        rows.denials(refused, refused_asked, len(tries) - 1, made, runner),
        rows.duration(small, time.monotonic() - began),
    ]


def _full(limit: Limit) -> bytes:
    """A prompt of just the size of the limit."""
    line = "0123456789abcde\n" if limit.unit == "bytes" else "0123456789äöü漢字\n"
    return (line * (limit.size // len(line) + 1))[: limit.size].encode()
