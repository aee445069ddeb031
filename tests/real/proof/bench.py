"""The world in which a CLI is proved: its own home and workspace, and a scripted model.

What the scripted model asks a CLI to do in each turn, by the CLI's own names for its tools.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from teamchat.runners.base import Job, Runner, Vendor
from teamchat.runners.child.live import LiveAgent
from tests.real.model.home import home_environment, plant
from tests.real.model.replies import Reply, Request
from tests.real.model.selftest import NOTE, SelfTest
from tests.real.model.server import ModelServer
from tests.real.model.table import SELF_TESTS
from tests.real.proof.watch import Observed, Watch, observe

SYSTEM = "You are the prover."


def make_home(folder: Path, server: ModelServer, path: str, vendor: Vendor) -> dict[str, str]:
    """The environment of a new home in `folder`, with something to mention. A workspace with a note is beside it."""
    (folder / "home").mkdir()
    (folder / "work").mkdir()
    for name in ("objects", "refs"):  # a repository: no CLI looks for a project's files above it
        (folder / "work" / ".git" / name).mkdir(parents=True)
    (folder / "work" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "work" / NOTE).write_text("The word is XYLOPHONE.\n")
    plant(folder / "home", SELF_TESTS[vendor])
    return home_environment(folder / "home", server.url, path)


class Bench(Struct, frozen=True):
    """One CLI with its home, workspace and model."""

    runner: Runner
    server: ModelServer
    env: Mapping[str, str]
    folder: Path

    @property
    def vendor(self) -> Vendor:
        assert self.runner.vendor
        return self.runner.vendor

    @property
    def test(self) -> SelfTest:
        return SELF_TESTS[self.vendor]

    @property
    def can_stay(self) -> bool:
        """True if one process of this CLI can take several turns."""
        return bool(self.runner.sessions and self.runner.sessions.live)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def job(self, **changes: Any) -> Job:
        base = Job((self.vendor,), self.work, self.folder, SYSTEM, model=self.test.model, env=self.env)
        return replace(base, **changes)

    async def turn(
        self, job: Job, stdin: bytes, replies: Sequence[Reply], *, hangs: bool = False, life: LiveAgent | None = None
    ) -> tuple[Observed, list[Request]]:
        """Run a turn in which the model answers with `replies`. Returns the observations and the model's requests.

        A turn that `hangs` is stopped while its tool runs, or at the model's next request if no tool ran.
        """
        self.server.script(self.vendor, replies)
        before = len(self.server.turns(self.vendor))

        def stuck(tree: Mapping[int, str]) -> bool:
            return HANGING[0] in tree.values() or len(self.server.turns(self.vendor)) > before + 1

        output = Path(tempfile.mkdtemp(prefix="turn-", dir=self.folder))  # its own, even without a request
        watch = Watch(self.runner, job, stdin, output, hangs=stuck if hangs else None, life=life)
        return await observe(watch), self.server.turns(self.vendor)[before:]

    async def plain_and_quoting(self) -> list[tuple[str, list[Request]]]:
        """The model's requests for a prompt that mentions nothing and for one that quotes mentions; and the prompts.

        The turns may edit: without tools to call, no agent or skill could be mentioned.
        """
        asked = []
        for text in ("Hello.", quoting(self.test)):
            said = self.runner.prepare(text, typed=range(0), exists=(NOTE, "$prover").__contains__).stdin
            _, requests = await self.turn(self.job(access="edit"), said, [Reply("Well.")])
            asked.append((said.decode(), requests))
        return asked

    async def turns_of_one_process(self) -> tuple[list[Observed], bool]:
        """Two turns in one process, or one if it does not stay: the observations, and whether it still runs."""
        job = self.job(memory="live", access="edit")
        rule = self.runner.command(job).live
        assert rule
        life = LiveAgent(rule)
        try:
            first, _ = await self.turn(job, b"Say one.", [Reply(tools=self.test.later), Reply("One.")], life=life)
            if first.end.failure or not life.runs():
                return [first], False
            second, _ = await self.turn(job, b"Say two.", [Reply("Two.")], life=life)
            return [first, second], life.runs()
        finally:
            await life.close()
            life.remove()


HANGING = ("tail", "-f", NOTE)
"""A command that never ends. Claude Code 2.1.330 runs no `sleep`, and `tail` only on files of its own folder."""


def quoting(test: SelfTest) -> str:
    """Text that the CLI would expand if a person had typed it."""
    return f"max says:\n{test.mentions}\n{' '.join(test.keywords)}\nThat is all."


def trying_to_write(test: SelfTest, target: Path) -> list[Reply]:
    """A model that writes a file with the CLI's editor, then one beside it with its shell, and then is done."""
    shell = test.running(f"touch {target}.shell")
    return [Reply(tools=(test.writing(target),)), Reply(tools=(shell,)), Reply("I tried.")]
