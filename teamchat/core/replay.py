"""Replaying a cassette: the whole tool in a temporary store, with recorded processes in place of real ones.

Prompts are built anew from the team and the inputs, so a changed instruction or a changed teamchat shows: a turn that
was not recorded is an error that names the difference, and never a live call.
"""

from __future__ import annotations

import base64
import difflib
import math
from collections.abc import Iterator
from pathlib import Path

from teamchat.core.cassette import Cassette, EndLine, Said, TurnLine
from teamchat.core.coordinator import ConversationCoordinator
from teamchat.core.errors import NoRecording, UsageError
from teamchat.core.member_turn import Outside
from teamchat.core.team import Team
from teamchat.core.team_json import team_from_json
from teamchat.runners.process import Chunk, Exit, Identity, Launch, Running
from teamchat.runners.recorded import NotRecorded, Player, RecordedTurn

CONTEXT_LINES = 2


def recorded_turn(line: TurnLine) -> RecordedTurn:
    return RecordedTurn(
        identity=Identity(line.member, line.agent, line.system),
        stdin=line.stdin.encode(),
        argv=tuple(line.argv),
        env_names=tuple(line.env),
        chunks=tuple(_chunk(at, stream, text) for at, stream, text in line.output),
        exit=Exit(line.exit_code, tuple(line.left), seconds=line.seconds),
    )


def _chunk(at: float, stream: str, text: str) -> Chunk:
    data = base64.b64decode(text) if stream.endswith("64") else text.encode()
    return Chunk("err" if stream.startswith("err") else "out", data, at)


def recorded_team(cassette: Cassette, root: Path) -> Team:
    """The team that was recorded; its members work in `root`. Raises `UsageError`."""
    try:
        return team_from_json(cassette.header.team, root)
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"the team in the cassette is not one of this version: {error}") from error


def recorded_outside(cassette: Cassette, speed: float) -> Outside:
    """The machine as the recording has it: its processes, and the `@paths` that existed."""
    player = Player(map(recorded_turn, cassette.turns), speed or math.inf)

    def launch(what: Launch) -> Running:
        try:
            return player(what)
        except NotRecorded:
            raise NoRecording(
                f"the cassette has no recording of this turn of {what.identity.member}"
                f"{difference(cassette.turns, what)}",
                "record it again: teamchat send --new --record FILE ...",
            ) from None

    existing = {path for turn in cassette.turns for path in turn.existing}
    return Outside(launch, check=lambda _turn: None, exists=lambda _cwd, path: path in existing, env={})


def difference(turns: tuple[TurnLine, ...], what: Launch) -> str:
    """What the nearest recorded turn was given and this one is not (-), and the other way round (+)."""
    mine = _given(what.identity.system_text, what.stdin.decode())
    same = [turn for turn in turns if turn.member == what.identity.member] or list(turns)
    if not same:
        return ": there is none at all"
    nearest = max(same, key=lambda turn: _likeness(_given(turn.system, turn.stdin), mine))
    if (nearest.member, _given(nearest.system, nearest.stdin)) == (what.identity.member, mine):
        return ", which has the same prompt as one that was played already"
    lines = difflib.unified_diff(
        _given(nearest.system, nearest.stdin), mine, "recorded", "now", lineterm="", n=CONTEXT_LINES
    )
    return "; the nearest one differs:\n" + "\n".join(lines)


def _given(system: str | None, stdin: str) -> list[str]:
    return [*(system or "").split("\n"), *stdin.split("\n")]


def _likeness(one: list[str], other: list[str]) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).quick_ratio()


def differences(coordinator: ConversationCoordinator, before: int, code: int, end: EndLine) -> Iterator[str]:
    """How a replayed run differs from the recorded one: its messages from number `before` on, and its exit code."""
    said = [Said.of(message) for message in coordinator.manager.get_messages()[before:]]
    for number, (now, then) in enumerate(zip(said, end.said, strict=False), before + 1):
        if now != then:
            yield f"message {number} of {then.speaker} is not what was recorded"
    if len(said) != len(end.said):
        yield f"{len(said)} messages instead of {len(end.said)}"
    if code != end.code:
        yield f"exit code {code} instead of {end.code}"
