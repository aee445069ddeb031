"""The hooks of a team: commands that get a line of `--json` when something has happened.

They run one after the other, each under a guardian, while turns go on. A hook that names a file waits while a member at
work may write it. No turn waits for a hook, and nothing that a hook does or fails to do changes the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

from teamchat.cli.output.lines import note
from teamchat.core.conversation.permission import IN_HOOK, trust_store
from teamchat.core.engine.events import PauseKind
from teamchat.core.errors import AgentMissing, TeamchatError, TeamFileError
from teamchat.core.files.whole_files import temporary_folder
from teamchat.core.store.rows import encoded
from teamchat.core.team.programs import Unusable, find_program
from teamchat.core.team.team import Member, Team
from teamchat.core.team.trust import TrustStore, require
from teamchat.core.team.trusted_files import files_of_hook
from teamchat.core.team.writers import may_write_file
from teamchat.core.text.clean import printable, visible
from teamchat.core.turn.caller import VARIABLE, find_caller
from teamchat.core.turn.lines import LineMaker, result_line
from teamchat.core.turn.run_events import (
    Conclusion,
    ConversationEvent,
    JsonLine,
    MessageStored,
    Replied,
    TaskChanged,
    TurnFinished,
    TurnStarted,
)
from teamchat.runners.base import StopRule
from teamchat.runners.child.process import launch
from teamchat.runners.child.running import Chunk, Launch, SpawnFailed
from teamchat.runners.untrusted.json import one_line

LONGEST_S = 10.0  # the longest time for one hook
REST_S = 30.0  # the longest time for hooks still waiting when the run is over
LOOKS_S = 0.1  # between two looks at whether a person asks for the end
LARGEST = 1 << 20  # bytes that a hook may print
NAMES: dict[type[ConversationEvent], str] = {
    MessageStored: "message",
    Replied: "message",
    TurnStarted: "turn_started",
    TurnFinished: "turn_finished",
    TaskChanged: "task_changed",
}


class Hooks:
    """Runs the hooks of one run. `warn` is told what went wrong, `asked` says how often a person asked for the end."""

    def __init__(
        self, team: Team, session: str, store: TrustStore, warn: Callable[[str], None], asked: Callable[[], int]
    ) -> None:
        self._team, self._session, self._store, self._warn, self._asked = team, session, store, warn, asked
        self._lines = LineMaker()
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._now = ""
        self._at_work: dict[int, tuple[Member, Path]] = {}  # working members by their turns
        self._fewer = asyncio.Event()

    def __call__(self, event: ConversationEvent) -> None:
        """Have the hook of the event run once those before it have ended."""
        match event:
            case TurnStarted(turn=turn) if not turn.setup.host:
                self._at_work[turn.number] = self._team.member(turn.member), Path(turn.setup.cwd)
            case TurnFinished(turn=turn):
                self._at_work.pop(turn.number, None)
                self._fewer.set()
        if (name := NAMES.get(type(event))) in self._team.hooks:
            for line in self._lines.of(event):
                self._add(str(name), line)

    def end(self, conclusion: Conclusion) -> None:
        """Have the hooks for the end of the run run once those before them have ended."""
        by_guard = conclusion.paused not in (None, PauseKind.INTERRUPTED)
        for name, happened in (("asked", conclusion.waiting_for is not None), ("paused", by_guard)):
            if happened and name in self._team.hooks:
                self._add(name, result_line(self._session, conclusion))

    def _add(self, name: str, line: JsonLine) -> None:
        self._waiting.append((name, encoded(line) + b"\n"))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Wait for the hooks that are left, but not for ever, nor if a person asks for the end again.

        A hook that is still running then is ended, and told.
        """
        self._at_work.clear()
        self._fewer.set()
        asked, loop = self._asked(), asyncio.get_running_loop()
        until = loop.time() + REST_S
        while self._task and not self._task.done():
            if self._asked() > asked or loop.time() > until:
                self._task.cancel()
                await asyncio.wait((self._task,))
                self._warn(f"the run is over, and hooks did not end: {', '.join((self._now, *self._left()))}")
            else:
                await asyncio.wait((self._task,), timeout=LOOKS_S)

    def _left(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self._waiting))

    async def _run(self) -> None:
        while self._waiting:
            name, line = self._waiting.popleft()
            self._now = name
            command = self._team.hooks[name]
            try:
                await self._nobody_writes(files_of_hook(self._team, command))
                require(self._team, self._store)  # a turn may have changed what the hook runs
                problem = await self._one(command, name, line)
            except (TeamchatError, SpawnFailed, OSError, ValueError) as error:  # a full disk, for example
                problem = f"was not run: {printable(str(error))}"
            if problem:
                self._warn(f"the hook {name} {problem}")

    async def _nobody_writes(self, files: set[Path]) -> None:
        """Wait until no member works that may write one of the files: a shell runs lines appended while it reads."""
        while any(
            may_write_file(member, self._team.agent_of(member), cwd, file)
            for member, cwd in self._at_work.values()
            for file in files
        ):
            self._fewer.clear()
            await self._fewer.wait()

    async def _one(self, command: tuple[str, ...], name: str, line: bytes) -> str | None:
        """Run one hook to its end. Returns why it failed; None if it has not."""
        program = find_program(command[0], os.environ)
        if isinstance(program, Unusable):
            return f"was not run: its program {printable(command[0])!r} {program.why}"
        env = {key: value for key, value in os.environ.items() if key != VARIABLE}
        said = deque[bytes](maxlen=8)
        with temporary_folder("hook") as folder:
            running = launch(
                Launch(
                    argv=(program, *command[1:]),
                    cwd=self._team.root,
                    env=env | {IN_HOOK: name, "TEAMCHAT_SESSION": self._session},
                    stdin=line,
                    folder=folder / "output",
                    stop=StopRule(grace_s=1.0),
                    max_output=LARGEST,
                )
            )
            late = False
            chunks = running.chunks()
            try:
                async with asyncio.timeout(LONGEST_S):
                    async for chunk in chunks:
                        if isinstance(chunk, Chunk):
                            said.append(chunk.data)
            except TimeoutError:
                late = True
            finally:
                with contextlib.suppress(Exception):
                    await chunks.aclose()
            if late or running.exit is None:
                return f"took longer than {LONGEST_S:g} s and was ended"
        ended = running.exit
        if ended.over_limit:
            return f"printed more than {LARGEST:,} bytes and was ended"
        words = one_line(b"".join(said).decode(errors="replace").strip().rpartition("\n")[2], 200)
        return ": ".join(filter(None, (f"failed with exit code {ended.code}", words))) if ended.code else None


def tell_hooks(option: str | None, session: str, event: ConversationEvent) -> None:
    """Run the hook of an event that happened outside of a run, if the team of `--team` has one."""
    from teamchat.cli.startup.workspace import find_team

    async def run(team: Team) -> None:
        hooks = Hooks(team, session, trust_store(), lambda text: note(visible(text)), lambda: 0)
        hooks(event)
        await hooks.close()

    with contextlib.suppress(TeamFileError, AgentMissing):  # the command needs no team
        team = find_team(option)
        if team.hooks and not find_caller():
            asyncio.run(run(team))
