from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.cassette.account import standing_of
from teamchat.core.cassette.format import Entry, HumanLine, dump_line, parse_cassette, read_cassette
from teamchat.core.cassette.player import RecordedTurn
from teamchat.core.cassette.redaction import output_lines
from teamchat.core.cassette.replay import recorded_check, recorded_team, recorded_turn
from teamchat.core.cassette.writer import CassetteWriter
from teamchat.core.check import Check, CheckResult, CheckStatus, NotRun
from teamchat.core.checks.command import CheckRun
from teamchat.core.conversation.inputs import Message
from teamchat.core.errors import UsageError
from teamchat.core.team.find import load
from teamchat.runners.child.running import Chunk, Exit, Identity
from teamchat.runners.untrusted.file_changes import FileChange, FileChanges, NoCheckpoint
from tests.core.full_disk import files_of_at_most
from tests.scripted_team import crew

SECRET = "hunter2-hunter2"  # in variables, prompts and output of these tests
NOTHING: dict[str, list[object]] = {"messages": [], "turns": [], "routes": []}
NEW = standing_of(())
KEY = "sk-ant-api03-" + "k3y" * 12
PRIVATE_KEY = "-----BEGIN PRIVATE KEY-----" + "MIIE" * 16 + "-----END PRIVATE KEY-----"


def writer(path: Path, world: Path) -> CassetteWriter:
    team = load(crew(world, {"max": ["Hello"]}, members={"max": {"system_instruction": f"Use {KEY}"}}).file)
    return CassetteWriter(path, team, {"MY_SECRET": SECRET, "HOME": "/home/kai"}, fence_key="k")


def turn(chunks: tuple[Chunk, ...], agent: str = "claude", stdin: str = "Hi") -> RecordedTurn:
    return RecordedTurn(
        Identity("max", agent, "You are Max"), stdin.encode(), ("x",), (), chunks, Exit(0, (), None, 1.5)
    )


def claude_delta(text: str) -> str:
    inner = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return json.dumps({"type": "stream_event", "event": inner, "parent_tool_use_id": None}) + "\n"


def gemini_delta(text: str) -> str:
    return json.dumps({"type": "message", "role": "assistant", "content": text, "delta": True}) + "\n"


def test_a_cassette_reads_back_as_it_was_recorded(tmp_path: Path, world: Path) -> None:
    path = tmp_path / "a.cassette"
    made = writer(path, world)
    made.begin(NEW)
    made.input(Message(text="Hi", to="max"))
    chunks = (Chunk("out", b"one\ntw", 0.1), Chunk("err", b"\xff\xfe\n", 0.2), Chunk("out", b"o\nthree", 0.3))
    made.turn(turn(chunks, "plain"))
    made.end(0, None, NOTHING, (), ())
    cassette = read_cassette(path)
    assert [run.input for run in cassette.runs] == [HumanLine(text="Hi", to="max")]
    played = recorded_turn(cassette.turns[0])
    for stream in ("out", "err"):
        assert joined(played.chunks, stream) == joined(chunks, stream)
    assert played.exit == Exit(0, (), None, 1.5, version="")
    assert recorded_team(cassette, tmp_path).member("max").cwd == tmp_path


def test_the_checks_of_a_team_are_recorded_without_its_folders_and_values(tmp_path: Path, world: Path) -> None:
    path = tmp_path / "a.cassette"
    made = crew(world, {"max": ["Hello"]})
    checks = f"""
        [checks.lint]
        command = ["./tools/lint", "--token", "{KEY}", "x/y"]
        [checks.style]
        command = ["../style"]
        [checks.tests]
        command = "TOKEN=s3cret-word make tests"
        timeout = 5
        folder = "sub"
        env = {{ DEPLOY_KEY = "ano-ther" }}
        env_keep = ["A"]
        needs = ["lint"]
    """
    made.file.write_text(made.file.read_text() + checks)
    team = load(made.file)
    CassetteWriter(path, team, {}, fence_key="k").begin(NEW)
    assert not [word for word in (KEY, "s3cret-word", "ano-ther") if word in path.read_text()]
    assert dict(recorded_team(read_cassette(path), tmp_path).checks) == {
        "lint": Check("lint", ("tools/lint", "--token", "*" * len(KEY), "x/y")),
        "style": Check("style", ("../style",)),
        "tests": Check("tests", "TOKEN=*********** make tests", 5.0, "sub", {"DEPLOY_KEY": ""}, ("A",), ("lint",)),
    }
    CassetteWriter(path, team, {}, fence_key="k").begin(NEW)
    with pytest.raises(UsageError, match="records another team"):
        CassetteWriter(path, replace(team, checks={}), {}, fence_key="k").begin(NEW)


DEMO = parse_cassette(files("teamchat.cli").joinpath("demo.cassette").read_text(encoding="utf-8"), "the demo")
CHECKS = CassetteWriter(Path("unused"), recorded_team(DEMO, Path("/work")), {}, fence_key="k")
PARTS = st.sampled_from(
    [b"\n", b"\r\n", b"\x00", b"\xff", "…".encode(), b'{"a": "', b'"}', b" ", b"ok", b"\x1b[31m", b"\xed\xa0\x80"]
)
CHANGES = FileChanges("", "a" * 40, "b" * 40, (FileChange("x y", "added", 1, 0),))
STATUS: list[tuple[CheckStatus, NotRun | None]] = [
    ("green", None),
    ("red", None),
    ("not_run", "missing"),
    ("not_run", "ended"),
    ("not_run", "interrupted"),
]


@given(
    st.lists(PARTS | st.binary(max_size=5), max_size=12).map(b"".join),
    st.sampled_from(STATUS),
    st.none() | st.integers(0, 255),
    st.sampled_from([None, NoCheckpoint("it is no git repository"), CHANGES]),
    st.sampled_from(["make tests", ("make", "tests", "a b", "*")]),
)
def test_any_run_of_a_check_is_played_as_it_was_recorded(
    output: bytes,
    status: tuple[CheckStatus, NotRun | None],
    code: int | None,
    changes: FileChanges | NoCheckpoint | None,
    command: str | tuple[str, ...],
) -> None:
    result = CheckResult(status[0], "why", code, 1.5, status[1], len(output), ("sleep 9",))
    ran, check = CheckRun(result, output, changes), Check("tests", command)
    entry = CHECKS.check_entry(check, ran, 2.0)
    header, begins = CHECKS.header, Entry(human=HumanLine(text="Hi"))
    cassette = parse_cassette("".join(map(dump_line, (header, begins, entry))), "x")
    (line,) = cassette.runs[0].checks
    assert (line.name, line.command, line.at) == ("tests", command, 2.0)
    assert recorded_check(line) == ran


def joined(chunks: tuple[Chunk, ...], stream: str) -> bytes:
    return b"".join(chunk.data for chunk in chunks if chunk.stream == stream)


@pytest.mark.parametrize("secret", [SECRET, KEY, PRIVATE_KEY])
@pytest.mark.parametrize(("agent", "delta"), [("claude", claude_delta), ("gemini", gemini_delta)])
def test_no_planted_secret_is_in_a_cassette(
    tmp_path: Path, world: Path, secret: str, agent: str, delta: object
) -> None:
    path = tmp_path / "a.cassette"
    made = writer(path, world)
    made.begin(NEW)
    made.input(Message(text=f"my key is {secret}"))
    pieces = [secret[:5], secret[5:9], secret[9:]]
    streamed = "".join(delta(piece) for piece in ("It is ", *pieces, " indeed"))  # type: ignore[operator]  # a function
    whole = json.dumps({"type": "note", "text": f"it is {secret}"}) + "\n"
    split = f"cut {secret}\n".encode()
    made.turn(
        turn(
            (
                Chunk("out", streamed.encode() + whole.encode(), 0.1),
                Chunk("err", split[:8], 0.2),
                Chunk("err", split[8:], 0.3),
            ),
            agent,
            stdin=f"the prompt with {secret}",
        )
    )
    made.end(0, None, NOTHING, (), ())
    text = path.read_text()
    for piece in (secret, pieces[2]):
        assert piece not in text
    played = recorded_turn(read_cassette(path).turns[0])
    said = [json.loads(line) for line in joined(played.chunks, "out").splitlines()]
    assert len(said) == 6  # every event is still there, and still JSON


@given(st.lists(st.tuples(st.sampled_from(["out", "err"]), st.binary())))
def test_lines_are_the_whole_output(pieces: list[tuple[str, bytes]]) -> None:
    chunks = tuple(Chunk("out" if name == "out" else "err", data, index) for index, (name, data) in enumerate(pieces))
    lines = output_lines(chunks)
    for stream in ("out", "err"):
        assert b"".join(line.data for line in lines if line.stream == stream) == joined(chunks, stream)
    assert all(line.data.count(b"\n") <= 1 for line in lines)


def test_a_recording_goes_on_only_with_its_own_conversation(tmp_path: Path, world: Path) -> None:
    path = tmp_path / "a.cassette"
    writer(path, world).begin(NEW)
    writer(path, world).begin(NEW)  # nothing said so far: it is the same conversation
    with pytest.raises(UsageError, match="does not match what this conversation has now"):
        writer(path, world).begin(NEW | {"messages": ["a", "b", "c"]})
    assert len(path.read_text().splitlines()) == 1


def test_a_recording_begins_with_a_new_conversation(tmp_path: Path, world: Path) -> None:
    with pytest.raises(UsageError, match="begins with a new conversation"):
        writer(tmp_path / "a.cassette", world).begin(NEW | {"messages": ["a", "b"]})
    assert not (tmp_path / "a.cassette").exists()


@pytest.mark.parametrize(
    "text", ["", "{}", "nonsense", '{"cassette": 2, "team": {}}', '{"cassette": 1, "team": {}}\n{"other": 1}', "\0"]
)
def test_what_is_no_cassette_is_said_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^x is not a cassette of this version: line [12]: [^\n]+$"):
        parse_cassette(text, "x")


class TestWhatCannotBeWritten:
    def test_a_new_file_goes(self, tmp_path: Path, world: Path) -> None:
        made = writer(tmp_path / "a.cassette", world)
        with files_of_at_most(100), pytest.raises(UsageError):
            made.begin(NEW)
        assert not (tmp_path / "a.cassette").exists()

    def test_a_line_that_has_no_end_goes(self, tmp_path: Path, world: Path) -> None:
        path = tmp_path / "a.cassette"
        made = writer(path, world)
        made.begin(NEW)
        before = path.read_bytes()
        with files_of_at_most(len(before) + 10), pytest.raises(UsageError):
            made.input(Message(text="Hi", to="max"))
        assert path.read_bytes() == before

    def test_a_link_stays_and_what_was_made_behind_it_goes(self, tmp_path: Path, world: Path) -> None:
        path, there = tmp_path / "a.cassette", tmp_path / "there"
        path.symlink_to(there)
        made = writer(path, world)
        with files_of_at_most(100), pytest.raises(UsageError):
            made.begin(NEW)
        assert (path.is_symlink(), there.exists()) == (True, False)

    @pytest.mark.parametrize("to", ["a.cassette", "missing/a.cassette"])
    def test_a_link_that_leads_nowhere_stays(self, tmp_path: Path, world: Path, to: str) -> None:
        path = tmp_path / "a.cassette"
        path.symlink_to(tmp_path / to)
        made = writer(path, world)
        with pytest.raises(UsageError):
            made.begin(NEW)
        assert path.is_symlink()
