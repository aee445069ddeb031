"""Records a conversation: every turn and input, without secrets, appended to a cassette as it happens."""

from __future__ import annotations

import base64
import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from teamchat.core.cassette.account import standing_of, well_formed_json
from teamchat.core.cassette.format import Entry, Header, Line, ProcessLine, dump_line, fixed_words, read_cassette
from teamchat.core.cassette.player import RecordedTurn
from teamchat.core.cassette.redaction import CutRedactor, encoded, named, output_lines, redact_lines
from teamchat.core.cassette.team import team_to_json
from teamchat.core.check import Check, without_place
from teamchat.core.checks.command import CheckRun
from teamchat.core.context.layers.collector import LayerContext
from teamchat.core.conversation.inputs import Input, Message, Resume
from teamchat.core.dispatch.connect import VARIABLE as DATABASE
from teamchat.core.engine.events import PauseKind
from teamchat.core.engine.state import UNBOUNDED, Bounds
from teamchat.core.engine.workflow import Process
from teamchat.core.errors import TeamchatError, UsageError
from teamchat.core.files.whole_files import write_private
from teamchat.core.receipt import Ran
from teamchat.core.team.team import Team
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import saying, unused
from teamchat.core.text.redact import Redactor
from teamchat.core.text.secret_words import secrets_in
from teamchat.patterns import regex
from teamchat.runners.base import Slash
from teamchat.runners.child.running import Chunk, CutShort, Identity
from teamchat.runners.untrusted.file_changes import FileChanges, NoCheckpoint


def check_recording(file: Path) -> None:
    """Check that the recording can be written, and the file to continue is a cassette. Raises `UsageError`."""
    new = Path(os.path.realpath(file))  # the target of a link
    try:
        with contextlib.suppress(FileExistsError):
            new.open("x").close()
            new.unlink()
            return
        file.open("a").close()
    except OSError as error:
        raise UsageError(f"the cassette {file} cannot be written: {error.strerror}") from error
    if file.stat().st_size:
        read_cassette(file)


Cooling = Mapping[str, float]  # agents that were cooling down, with the seconds left
NAME = regex(r"[a-z_]+")  # the path of a field
NONE_COOLS: Cooling = MappingProxyType({})


class Planned(Struct):
    """A turn's input beside its prompt: `@paths` that existed, a custom command, layers of text."""

    existing: set[str] = field(default_factory=set)
    slash: Slash | None = None
    told: dict[str, Any] | None = None


class CassetteWriter:
    """Appends to the cassette at `path`; `plans` has all that is known of each member's next turn.

    Every text of every line is written without the secrets of `env` and of the members' own variables.
    """

    def __init__(
        self, path: Path, team: Team, env: Mapping[str, str], label: str | None = None, *, fence_key: str
    ) -> None:
        self._root, self._secrets = team.root, secrets_of(team, env)
        self.path, self.redact = path, CutRedactor(Redactor(self._secrets))
        self.plans: defaultdict[str, Planned] = defaultdict(Planned)
        self._planned: dict[tuple[Identity, bytes], Planned] = {}
        self._broken: UsageError | None = None
        header = self._clean({"cassette": 1, "team": team_to_json(team), "label": label})
        self.header = Header.model_validate({**header, "fence_key": fence_key if team.fence else None})

    def hide(self, process: Process | None) -> None:
        """Redact also the secrets in commands that a person has typed as checks; called before `begin`."""
        commands = [check.command for check in process.checks if check.command] if process else []
        secrets = [value for command in commands for value in secrets_in(_words(command))]
        typed = {f"typed {number} SECRET": value for number, value in enumerate(secrets)}
        self.redact = CutRedactor(Redactor({**self._secrets, **typed}))

    def begin(self, stands: Mapping[str, Any]) -> None:
        """Write the header, or check that the file ends where this conversation `stands`, in the form of `standing`.

        Raises `UsageError` when it does not: a replay could never find the turns.
        """
        for text in stands["messages"]:
            self.redact(text)  # a secret in it may return in pieces
        if self.path.exists() and self.path.stat().st_size:
            self._check(stands)
        elif stands["messages"]:
            raise UsageError(
                "a recording begins with a new conversation: the earlier messages would be missing",
                saying("--new", "--record", str(self.path)),
            )
        else:
            self._append(self.header)

    def _check(self, stands: Mapping[str, Any]) -> None:
        there = read_cassette(self.path)
        ends = [run.end.model_dump(mode="json", exclude_unset=True) for run in there.runs if run.end]
        if there.header.model_copy(update={"label": self.header.label}) != self.header:
            wrong = "records another team or conversation"
        elif len(ends) < len(there.runs):
            wrong = "breaks off"
        elif self._clean(standing_of(ends)) != self._clean(stands):
            wrong = "does not match what this conversation has now"
        else:
            return
        raise UsageError(
            f"the recording {printable(str(self.path))} {wrong}", saying("--new", "--record", str(unused(self.path)))
        )

    def input(self, given: Input, cooling: Cooling = NONE_COOLS, bounds: Bounds = UNBOUNDED) -> None:
        """Record the beginning of a run. Images are recorded by name and kind."""
        kind, values = ("resume", {"mode": given.mode.value}) if isinstance(given, Resume) else ("human", _said(given))
        cools = {name: round(seconds, 3) for name, seconds in cooling.items()}
        bound = {"turns": bounds.turns, "only": bounds.only or None, "window": bounds.window}
        self._append(Entry.model_validate({kind: self._clean({**values, "cooling": cools, **bound})}))

    def end(
        self,
        code: int,
        paused: PauseKind | None,
        stored: Mapping[str, Any],
        shown: Sequence[Any],
        printed: Sequence[str],
    ) -> None:
        """Record the end of the run: the account of everything it stored, and its printed output.

        Raises `UsageError`, also if a turn could not be written: the recording then breaks off.
        """
        if self._broken:
            raise self._broken
        lines = self.redact("\n".join(printed)).split("\n") if printed else []  # a secret may span several
        end = {"code": int(code), "paused": paused and paused.value, **stored, "shown": shown, "printed": lines}
        self._append(Entry.model_validate({"end": self._clean(end)}))

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """Remove lines written in this context after an error: the conversation does not have them either."""
        size = self.path.stat().st_size
        try:
            yield
        except TeamchatError:
            with contextlib.suppress(OSError):
                os.truncate(self.path, size)
            raise

    def told(self, context: LayerContext, layers: Mapping[str, str]) -> None:
        """Record the files and lessons that the turn in preparation gives to a member."""
        part: dict[str, Any] = {}
        if context.part:
            part = {"part": (context.part.role, context.part.number)}
            part |= {"go": context.part.go} if context.part.go > 1 else {}
        self.plans[context.member.name].told = {"answers": context.message.id, "layers": layers} | part

    def planned(self, turn: tuple[Identity, bytes]) -> None:
        """Close the preparation of a member's turn that is ready: the next one may be prepared meanwhile."""
        if plan := self.plans.pop(turn[0].member, None):
            self._planned[turn] = plan

    def turn(self, turn: RecordedTurn) -> None:
        """Record all that crossed the process boundary. A failed write does not fail the turn: `end` reports it."""
        self._append_if_whole(lambda: self.turn_entry(turn))

    def turn_entry(self, turn: RecordedTurn) -> Entry:
        lines = redact_lines(output_lines(turn.chunks), self.redact)
        plan = self._planned.get(turn.key) or self.plans.pop(turn.identity.member, Planned())
        texts = plan.told
        values: dict[str, Any] = {
            "member": turn.identity.member,
            "agent": turn.identity.agent,
            "system": turn.identity.system_text,
            "stdin": turn.stdin.decode(errors="replace"),
            "argv": turn.argv,
            "env": turn.env_names,
            "at": round(turn.at, 6),  # it orders the turns of a group
            "existing": sorted(plan.existing),
            "slash": to_builtins(plan.slash) if plan.slash else None,
            "told": texts if texts and (texts["layers"] or "part" in texts) else None,  # parts are told apart by order
            "cut": turn.cut and _cut(turn.cut),
            "error": turn.error and to_builtins(turn.error),
            **({"ran": _ran(*turn.ran)} if turn.ran else {}),
        }
        if turn.exit:
            values |= {
                "cwd": named(turn.exit.cwd, lines),
                "version": turn.exit.version or None,
                "login": turn.exit.login,
                "exit_code": turn.exit.code,
                "over_limit": turn.exit.over_limit,
                "seconds": round(turn.exit.seconds, 3),
                "left": turn.exit.left,
                "changed": turn.exit.changed,
                "not_all_looked_at": turn.exit.not_all_looked_at,
                "files": _files(turn.exit.files),
            }
        output = [encoded(line) for line in lines]  # already clean, and base64 shows no secrets
        return Entry.model_validate({"turn": {**self._clean(values), "output": output}})

    def check(self, check: Check, ran: CheckRun, at: float) -> None:
        """Record a run of a check that began `at` seconds after its run. A failed write is reported by `end`."""
        self._append_if_whole(lambda: self.check_entry(without_place(check, self._root), ran, at))

    def _append_if_whole(self, make: Callable[[], Entry]) -> None:
        try:
            if self._broken is None:
                self._append(make())
        except UsageError as error:
            self._broken = error

    def check_entry(self, check: Check, ran: CheckRun, at: float) -> Entry:
        lines = redact_lines(output_lines([Chunk("out", ran.output, 0.0)]), self.redact)
        output = b"".join(line.data for line in lines)
        values: dict[str, Any] = {
            "name": check.name,
            "command": check.command,
            **to_builtins(ran.result),
            "seconds": round(ran.result.seconds, 3),
            "files": _files(ran.changes),
            "at": round(at, 6),
        }
        return Entry.model_validate({"check": {**self._clean(values), **_as_text(output)}})

    def _clean(self, value: Any) -> Any:
        """Convert the value to JSON with every text redacted."""
        return self._redacted(well_formed_json(value))

    def _redacted(self, value: Any) -> Any:
        match value:
            case str():
                return self.redact(value)
            case dict():
                return {self._key(key): self._redacted(item) for key, item in value.items()}
            case list():
                return [self._redacted(item) for item in value]
            case _:
                return value

    def _key(self, key: str) -> str:
        """Redact a key, but not the format's own names, even if a secret has the same value."""
        return key if NAME.fullmatch(key) else self.redact(key)

    def _append(self, line: Line) -> None:
        try:
            with _appending(self.path) as file:
                file.write(dump_line(line))
        except OSError as error:
            raise UsageError(f"the cassette {self.path} cannot be written: {error.strerror}") from error


@contextlib.contextmanager
def _appending(path: Path) -> Iterator[TextIO]:
    """Open the file at `path` to append. After an error it is as before, or removed if it was created here.

    A new file is for its owner alone. A line without an end would hide the others.
    """
    path = Path(os.path.realpath(path))  # a link belongs to somebody
    made = False
    with contextlib.suppress(FileExistsError):
        write_private(path, b"")
        made = True
    size = path.stat().st_size
    try:
        with path.open("a", encoding="utf-8") as file:
            yield file
    except OSError:
        with contextlib.suppress(OSError):
            path.unlink() if made else os.truncate(path, size)
        raise


def secrets_of(team: Team, env: Mapping[str, str]) -> dict[str, str]:
    """Collect values that may be secrets by their names: of variables, and in the commands of members and checks.

    The names in a team and the words of the format are not secrets.
    """
    names = {name for member in team.members for name in (member.name, member.title, member.agent)}
    no_secrets = names | {team.name, *team.checks} | fixed_words()
    variables = [env, *(member.env for member in team.members), *(check.env for check in team.checks.values())]
    commands = [(*team.agent_of(member).command, *member.args) for member in team.ai_members]
    commands += [_words(check.command) for check in team.checks.values()]
    in_words = [("SECRET", value) for words in commands for value in secrets_in(words)]
    named = [*in_words, *(pair for table in variables for pair in table.items())]
    named += [("SECRET", env[DATABASE])] if env.get(DATABASE) else []
    known = [(name, value) for name, value in named if value not in no_secrets]
    return {f"{number} {name}": value for number, (name, value) in enumerate(known)}


def _words(command: str | tuple[str, ...]) -> tuple[str, ...]:
    """List the words of a check's command; of a text also the text itself, where words in quotes belong together."""
    return (command, *command.split()) if isinstance(command, str) else command


def _cut(cut: CutShort) -> dict[str, Any]:
    why = cut.why
    return {"at": round(cut.at, 3), "kind": why.kind.value, "reason": why.reason, "hint": why.hint}


def _ran(ran: Ran, ended: bool) -> dict[str, Any]:
    """Return where a turn ran, without the folders and commands of that machine."""
    began = bool(ran.executor)
    return {"host": ran.host, "began": began, "ended": ended, "access_note": ran.access_note, "teamchat": ran.teamchat}


def _as_text(output: bytes) -> dict[str, str]:
    try:
        return {"output": output.decode()}
    except UnicodeDecodeError:
        return {"output64": base64.b64encode(output).decode()}


def _files(files: FileChanges | NoCheckpoint | None) -> Mapping[str, Any] | None:
    """Return the changes without the path of the work tree, which belongs to this machine."""
    if files is None:
        return None
    fields: Mapping[str, Any] = to_builtins(replace(files, top="") if isinstance(files, FileChanges) else files)
    return fields


def _said(message: Message) -> dict[str, Any]:
    images = [{"name": image.name, "kind": image.kind} for image in message.images]
    values: dict[str, Any] = {
        "text": message.text,
        "speaker": message.speaker,
        "to": message.to,
        "images": images,
        "typed": message.typed_through,
    }
    if message.pasted:
        values["pasted"] = message.pasted
    if message.process:
        given = to_builtins(message.process)
        values["process"] = {name: given[name] for name in ProcessLine.model_fields if given[name]}
    return values
