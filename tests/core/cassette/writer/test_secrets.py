"""No secret is in a cassette: in no field, not in pieces that were streamed, nor in what is left where it was cut."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.cassette.account import standing_of
from teamchat.core.cassette.format import read_cassette
from teamchat.core.cassette.player import NotStarted, RecordedTurn
from teamchat.core.cassette.redaction import CUT, SHORTEST, CutRedactor, redact_streamed
from teamchat.core.cassette.writer import CassetteWriter
from teamchat.core.conversation.inputs import Message
from teamchat.core.team.find import load
from teamchat.core.text.redact import Redactor
from teamchat.runners.agent_events import Failure, FailureKind
from teamchat.runners.child.running import Chunk, CutShort, Exit, Identity
from tests.core.routing.marker_texts import grows_linearly
from tests.program import run_here
from tests.scripted_team import crew

SECRET = 'hunter2-"quoted"-hunter2'  # in a variable
OF_MEMBER = "correct horse battery staple"  # in a member's own variable
NEW = standing_of(())
KEY = "sk-ant-api03-" + "k3Y" * 12
ALL = f"<{SECRET}|{OF_MEMBER}|{KEY}>"
PIECES = (SECRET[:12], SECRET[-12:], OF_MEMBER[:12], OF_MEMBER[-12:], KEY[:16], KEY[-12:])


def writer(path: Path, world: Path) -> CassetteWriter:
    max_ = {"system_instruction": ALL, "title": ALL, "args": ["--key", KEY], "allow": [f"curl {KEY}"]}
    team = load(crew(world, {"max": ["Hi"]}, team={"task": ALL, "name": f"team {KEY}"}, members={"max": max_}).file)
    members = tuple(replace(member, env={"API_TOKEN": OF_MEMBER}) for member in team.members)
    return CassetteWriter(
        path,
        replace(team, members=members),
        {"MY_SECRET": SECRET, "HOME": "/home/kai", "USER_AUTH": "kailai"},
        ALL,
        fence_key="",
    )


def assert_clean(path: Path) -> None:
    text = path.read_text()
    for form in PIECES:
        assert form not in text
        assert json.dumps(form)[1:-1] not in text


@pytest.mark.parametrize("data", [ALL, json.dumps({"type": "x", "text": ALL})])
def test_no_field_of_a_cassette_has_a_secret(tmp_path: Path, world: Path, data: str) -> None:
    path = tmp_path / "a.cassette"
    made = writer(path, world)
    made.begin(NEW)
    made.input(Message(text=ALL, speaker=ALL, to=ALL), {ALL: 1.0})
    made.plans["max"].existing.add(ALL)
    chunks = (
        Chunk("out", data.encode() + b"\n", 0.1),
        Chunk("err", ALL.encode()[:9], 0.2),
        Chunk("err", ALL.encode()[9:] + b"\n", 0.3),
        Chunk("err", b"\xff" + ALL.encode() + b"\n", 0.3),
    )
    end = Exit(1, (ALL,), None, 1.0, Path(f"/{ALL}"))
    cut = CutShort(Failure(FailureKind.AGENT, ALL, ALL), 0.5)
    identity = Identity("max", "claude", ALL)
    made.turn(RecordedTurn(identity, ALL.encode(), (ALL,), (ALL,), chunks, end, cut))
    made.turn(RecordedTurn(identity, ALL.encode(), (), (), (), None, error=NotStarted("missing", ALL, ALL)))
    message = {"id": "msg-1", "speaker": "max", "kind": "ai", "to": [ALL], "markers": [ALL], "text": ALL}
    turn = {"number": 1, "member": "max", "agent": ALL, "status": "done", "route": 1, "shown_through": "msg-1"}
    turn |= {"setup": {ALL: ALL}, "outcome": {"notes": [ALL]}, "partial": ALL, "events": [["Text", {"text": ALL}]]}
    todo = {"number": 1, "by": ALL, "text": ALL, "done": False}
    stored = {"messages": [message], "turns": [turn], "routes": [], "task": ALL, "todos": [todo]}
    made.end(0, None, stored, [{"type": "x", "text": [ALL]}], [ALL])
    assert_clean(path)
    cassette = read_cassette(path)  # and it is one still
    assert cassette.header.team.members[0].name == "kailai"  # who is in a team is no secret, whatever has that value


def deltas(*pieces: str) -> list[str]:
    """A tool's input as Claude streams it."""
    inner = ({"type": "content_block_delta", "delta": {"partial_json": piece}} for piece in pieces)
    return [json.dumps({"type": "stream_event", "event": event}) + "\n" for event in inner]


def joined(lines: list[str]) -> str:
    return "".join(json.loads(line)["event"]["delta"]["partial_json"] for line in lines)


@given(st.lists(st.integers(0, 60), max_size=8), st.sampled_from([SECRET, KEY]))
def test_a_secret_in_the_pieces_of_a_tool_s_input_is_taken_out(cuts: list[int], secret: str) -> None:
    whole = f"curl -H {secret} x"
    at = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    lines = deltas(*(whole[start:end] for start, end in pairwise(at)))
    done = redact_streamed(lines, Redactor({"MY_SECRET": SECRET}))
    assert joined(done) == f"curl -H {'*' * len(secret)} x"
    assert len(done) == len(lines)


@given(st.lists(st.text()))
def test_lines_without_a_secret_stay_as_they_are(texts: list[str]) -> None:
    lines = [*deltas(*texts), "no JSON\n", "{broken\n", "{" * 5000]
    assert redact_streamed(lines, Redactor({})) == lines


@given(st.integers(6, len(KEY) - 1), st.integers(6, len(KEY) - 1))
def test_what_is_left_of_a_secret_beside_a_cut_is_taken_out(head: int, tail: int) -> None:
    redact = CutRedactor(Redactor({}))
    redact(f"seen whole: {KEY}, before")
    cut = redact(f"a {KEY[:head]}…9 tokens truncated…{KEY[-tail:]} b {KEY[:head]}…")
    assert cut == f"a {'*' * head}…9 tokens truncated…{'*' * tail} b {'*' * head}…"


def test_an_ordinary_cut_stays() -> None:
    redact = CutRedactor(Redactor({}))
    redact(KEY)
    assert redact("and so on… as ever…") == "and so on… as ever…"


LIKE_EACH_OTHER = ("abcdefgh", "abcdefxyz", "aaaaaaaaaa", "fghabcdefgh")
PARTS = [part for whole in LIKE_EACH_OTHER for at in range(3, len(whole)) for part in (whole[:at], whole[at:])]


@given(st.lists(st.sampled_from([CUT, CUT, " ", "a", *PARTS])).map("".join))
def test_beside_no_cut_is_a_piece_of_a_secret(text: str) -> None:
    redact = CutRedactor(Redactor({f"KEY_{number}": secret for number, secret in enumerate(LIKE_EACH_OTHER)}))
    redact(" ".join(LIKE_EACH_OTHER))
    done = redact(text)
    assert [one for one, other in zip(done, text, strict=True) if one != other] == ["*"] * (done.count("*"))
    assert [part for part in PARTS if len(part) >= SHORTEST and is_beside(part, done)] == []


def is_beside(part: str, text: str) -> bool:
    """Whether a beginning of a secret is right before a cut, or an end of one right behind."""
    begins = any(whole.startswith(part) for whole in LIKE_EACH_OTHER) and f"{part}{CUT}" in text
    return begins or (any(whole.endswith(part) for whole in LIKE_EACH_OTHER) and f"{CUT}{part}" in text)


def test_cuts_take_time_as_their_number() -> None:
    redact = CutRedactor(Redactor({}))
    redact(" ".join(f"{KEY}{number}" for number in range(1000)))
    assert grows_linearly(redact, f"{CUT}{KEY[-9:]}1 {KEY[:9]}{CUT}")


def test_what_was_said_before_the_recording_goes_on_is_known(tmp_path: Path, world: Path) -> None:
    path = tmp_path / "a.cassette"
    made = writer(path, world)
    made.begin(NEW)
    message = {"id": "msg-1", "speaker": "kailai", "kind": "human", "to": [], "markers": [], "text": KEY}
    made.input(Message(text=KEY))
    made.end(0, None, {"messages": [message], "turns": [], "routes": []}, [], [])
    again = writer(path, world)
    again.begin(NEW | {"messages": [KEY]})
    again.input(Message(text=f"{KEY[:20]}…"))
    assert_clean(path)


@pytest.mark.parametrize("word", ["system", "claude", "timeout", "interrupted", "cassette", "priority", "        "])
def test_a_word_of_the_format_in_a_variable_takes_nothing_out(
    world: Path, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew(world, {"max": ["Hi,\n        you"]}, like={"max": "claude"})
    monkeypatch.setenv("AUTH_TYPE", word)
    assert run_here("send", "--record", "a.cassette", "Go").code == 0
    ran = run_here("replay", "--speed", "0", "--verify", "a.cassette")
    assert (ran.code, "Hi,\n        you" in ran.out) == (0, True), ran.err
