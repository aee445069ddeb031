"""The file of a session's last run: what is appended is read once and in order, whatever happens to the file."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teamchat.core.errors import ExitCode
from teamchat.core.turn import run_file
from teamchat.core.turn.lines import LeftOutLine, LineMaker, NoteLine, ResultLine, RunLine, TextDeltaLine, TextLine
from teamchat.core.turn.run_events import AgentSpoke, Conclusion, JsonLine, TaskChanged, Warned, spoken
from teamchat.core.turn.run_file import RunFile, RunReader, remove_run_file, tell_watchers
from teamchat.runners.agent_events import AgentEvent, Note, Text, TextDelta

DONE = Conclusion(ExitCode.DONE)


@pytest.mark.parametrize("what", ["a folder", "a pipe", "a link to a copy", "nothing", "no folder"])
def test_whatever_takes_the_place_of_the_file_the_run_ends_as_it_would_and_nobody_hangs(
    path: Path, reader: RunReader, tmp_path: Path, what: str
) -> None:
    file = RunFile(path, "s1")
    file(says(TextDelta("Ha")))
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    path.unlink()
    match what:
        case "a folder":
            path.mkdir()
        case "a pipe":
            os.mkfifo(path)
        case "a link to a copy":
            path.symlink_to(copy)
        case "no folder":
            path.parent.rmdir()
    list(reader.read())
    file(says(Text("Half")))
    file.finish(DONE)
    file.close()
    if what in ("a pipe", "a link to a copy", "nothing"):
        assert texts(list(reader.read()))[-2:] == ["TextLine Half", "ResultLine"]
    else:
        assert list(reader.read()) == []


def test_odd_lines_hinder_no_file_from_being_written_anew(path: Path, reader: RunReader) -> None:
    file, piece = RunFile(path, "s1"), "x" * run_file.REPLACED
    file(says(TextDelta(piece)))
    file(says(Note("\ud800")))
    with path.open("ab") as more:
        more.write(b'{"type":"left_out","lines":"many"}\n{"type":"later"}\n{"type":[]}\n[]\nhalf\n')
    file(says(Text(piece)))
    file.finish(DONE)
    file.close()
    assert path.stat().st_size < 2 * len(piece)
    assert [type(line).__name__ for line in reader.read()] == ["RunLine", "NoteLine", "TextLine", "ResultLine"]


def test_the_lines_of_an_event_are_made_once_for_all_who_ask() -> None:
    lines = LineMaker()
    first, second = says(Note("one")), says(Note("two"))
    assert lines.of(first) is lines.of(first)
    assert [texts(lines.of(event)) for event in (second, first)] == [["NoteLine two"], ["NoteLine one"]]


@pytest.mark.parametrize("room", [1 << 60])
def test_a_disk_that_is_almost_full_is_left_to_the_store(
    path: Path, reader: RunReader, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = RunFile(path, "s1")
    file(Warned("before"))
    monkeypatch.setattr(run_file, "ROOM", room)
    file(Warned("lost"))
    monkeypatch.undo()
    file(Warned("after"))
    assert texts(list(reader.read())) == ["RunLine", "Warned before", "LeftOutLine 1", "Warned after"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return run_file.run_file(tmp_path, 1)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[RunReader]:
    with contextlib.closing(RunReader(path)) as reader:
        yield reader


def read(path: Path) -> list[str]:
    """What somebody reads who comes now."""
    with reading(path) as reader:
        return texts(list(reader.read()))


@pytest.fixture
def reader(path: Path) -> Iterator[RunReader]:
    with reading(path) as reader:
        yield reader


def says(event: AgentEvent, turn: int = 1) -> AgentSpoke:
    return AgentSpoke("max", turn, event)


def texts(lines: Sequence[JsonLine]) -> list[str]:
    """What was read, in brief."""
    return [f"{type(line).__name__} {getattr(line, 'text', getattr(line, 'lines', ''))}".strip() for line in lines]


def test_a_run_begins_with_a_line_of_its_own_and_ends_with_its_result(path: Path, reader: RunReader) -> None:
    assert list(reader.read()) == []
    file = RunFile(path, "s1")
    assert not path.exists(), "a run that tells nothing leaves the last one"
    file(TaskChanged("Build"))
    first, task = reader.read()
    assert isinstance(first, RunLine)
    assert (first.number, first.session, texts([task])) == (1, "s1", ["TaskChanged Build"])
    file.finish(DONE)
    (end,) = reader.read()
    assert isinstance(end, ResultLine)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for line in path.read_text().splitlines():
        assert json.loads(line)["v"] == 1


def run(path: Path, text: str) -> None:
    """A whole run."""
    file = RunFile(path, "s1")
    file(Warned(text))
    file.finish(DONE)
    file.close()


def test_who_reads_goes_on_in_the_file_of_the_next_run_and_sees_how_many_it_has_missed(path: Path) -> None:
    with reading(path) as reader:
        numbers = []
        for missed in (0, 0, 2):
            for _ in range(missed):
                run(path, "nobody reads it")
            run(path, "Hi")
            first, *rest = reader.read()
            assert isinstance(first, RunLine)
            assert texts(rest) == ["Warned Hi", "ResultLine"]
            numbers.append(first.number)
    assert numbers == [1, 2, 5]


def test_a_line_that_is_not_whole_yet_is_read_later(path: Path, reader: RunReader) -> None:
    RunFile(path, "s1")(Warned("one"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    assert texts(list(reader.read())) == ["RunLine"]
    with path.open("ab") as file:
        file.write(whole[-7:])
    assert texts(list(reader.read())) == ["Warned one"]


def test_a_line_of_a_later_teamchat_is_passed_over(path: Path) -> None:
    file = RunFile(path, "s1")
    file(Warned("one"))
    with path.open("ab") as other:
        other.write(b'{"v":1,"type":"of_later"}\n')
    file(Warned("two"))
    assert read(path) == ["RunLine", "Warned one", "Warned two"]


def test_pieces_of_text_are_removed_once_their_block_is_there(path: Path, reader: RunReader) -> None:
    file = RunFile(path, "s1")
    for event in (TextDelta("Ha"), TextDelta("lf"), Text("Half"), TextDelta("And"), Note("well")):
        file(says(event))
    assert len(list(reader.read())) == 6
    file.finish(DONE)
    assert texts(list(reader.read())) == ["ResultLine"]
    assert read(path) == [
        "RunLine", "TextLine Half", "TextDeltaLine And", "NoteLine well", "ResultLine",
    ]  # fmt: skip


def test_what_a_command_tells_comes_behind_the_last_run(path: Path, tmp_path: Path, reader: RunReader) -> None:
    tell_watchers(tmp_path, 1, "s1", Warned("before any run"))
    assert texts(list(reader.read())) == ["Warned before any run"]
    file = RunFile(path, "s1")
    file(Warned("a run"))
    assert texts(list(reader.read())) == ["RunLine", "Warned a run"]
    tell_watchers(tmp_path, 1, "s1", Warned("while it runs"))
    file(Warned("further"))
    assert texts(list(reader.read())) == ["Warned while it runs", "Warned further"]


def test_what_is_no_unicode_is_escaped(path: Path) -> None:
    RunFile(path, "s1")(Warned("a\udc80b"))
    assert read(path) == ["RunLine", "Warned a\udc80b"]


def test_the_files_of_a_session_are_removed(path: Path, tmp_path: Path) -> None:
    RunFile(path, "s1")(Warned("one"))
    RunFile(run_file.run_file(tmp_path, 2), "s2")(Warned("another"))
    remove_run_file(tmp_path, 1)
    remove_run_file(tmp_path, 1)
    assert [file.name for file in path.parent.iterdir()] == ["session-2.jsonl"]


@contextlib.contextmanager
def no_file_over(size: int) -> Iterator[None]:
    """The kernel lets no file of this process grow beyond that size: a write is cut short, and the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 1, 40, 200])
def test_a_full_disk_ends_nothing_and_is_told_once_there_is_room(path: Path, room: int, reader: RunReader) -> None:
    file = RunFile(path, "s1")
    file(Warned("before"))
    assert texts(list(reader.read())) == ["RunLine", "Warned before"]
    with no_file_over(path.stat().st_size + room):
        for number in range(9):
            file(Warned(f"during {number}"))
    file(Warned("after"))
    file.finish(DONE)
    seen = list(reader.read())
    kept = [text for text in texts(seen) if text.startswith("Warned during")]
    assert kept == [f"Warned during {number}" for number in range(len(kept))]
    assert texts(seen)[len(kept) :] == [f"LeftOutLine {9 - len(kept)}", "Warned after", "ResultLine"]


def test_a_run_that_has_no_room_from_its_beginning_begins_its_file_later(path: Path) -> None:
    file = RunFile(path, "s1")
    with no_file_over(0):
        file(Warned("lost"))
        file(Warned("lost, too"))
    file(Warned("kept"))
    assert read(path) == ["RunLine", "LeftOutLine 2", "Warned kept"]


def smaller(patch: pytest.MonkeyPatch) -> None:
    """Files of a few lines."""
    for name, size in {"LARGEST": 4000, "FIRST": 1000, "LAST": 2000, "REPLACED": 300}.items():
        patch.setattr(run_file, name, size)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    smaller(monkeypatch)


@pytest.mark.usefixtures("small")
def test_what_is_too_long_has_its_beginning_and_its_end_and_says_what_is_missing(path: Path) -> None:
    file = RunFile(path, "s1")
    for number in range(500):
        file(Warned(f"number {number}"))
        assert path.stat().st_size <= run_file.LARGEST + 100
    file.finish(DONE)
    begins, *warnings, end = read(path)
    (missing,) = [text for text in warnings if text.startswith("LeftOutLine")]
    first, last = warnings[: warnings.index(missing)], warnings[warnings.index(missing) + 1 :]
    assert (begins, end) == ("RunLine", "ResultLine")
    assert first == [f"Warned number {number}" for number in range(len(first))]
    assert last == [f"Warned number {500 - len(last) + number}" for number in range(len(last))]
    assert len(first) + int(missing.split()[1]) + len(last) == 500
    assert min(len(first), len(last)) > 5


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["delta", "delta", "delta", "text", "note", "tell", "read", "run"]), st.integers(1, 3)),
    max_size=120,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_whoever_reads_at_any_moments_is_told_each_line_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    state = tmp_path_factory.mktemp("state")
    path = run_file.run_file(state, 1)
    with pytest.MonkeyPatch.context() as patch, reading(path) as reader:
        smaller(patch)
        seen, written = list[JsonLine](), list[str]()

        def begun() -> RunFile:
            file = RunFile(path, "s1")
            file(Warned("begins"))
            written.append("Warned begins")
            return file

        file = begun()
        for number, (what, turn) in enumerate(steps):
            text = f"{number} {'x' * 60}"
            match what:
                case "delta" | "text" | "note":
                    kinds: dict[str, type[TextDelta | Text | Note]] = {"delta": TextDelta, "text": Text, "note": Note}
                    event = kinds[what](text)
                    file(says(event, turn))
                    written.append(f"{type(event).__name__}Line {text}")
                case "tell":
                    tell_watchers(state, 1, "s1", Warned(text))
                    written.append(f"Warned {text}")
                case "read":
                    seen += reader.read()
                case _:
                    file.finish(DONE)
                    file.close()
                    seen += reader.read()
                    file = begun()
        seen += reader.read()
        file.close()
    check_told(seen, written)


def check_told(seen: Sequence[JsonLine], written: Sequence[str]) -> None:
    """All lines were told in order, or counted as missing. Pieces of text may be missing, and come in order, too."""
    told = [line for line in seen if not isinstance(line, RunLine | ResultLine)]
    whole = [text for text in written if not text.startswith("TextDelta")]
    left = iter(whole)
    for line in told:
        if isinstance(line, LeftOutLine):
            for _ in range(line.lines):
                next(left)
        elif isinstance(line, TextLine | NoteLine) or not isinstance(line, TextDeltaLine):
            assert next(left) == texts([line])[0]
    assert next(left, None) is None
    pieces = [text for text in texts(told) if text.startswith("TextDelta")]
    assert max(Counter(pieces).values(), default=1) == 1
    places = [written.index(piece) for piece in pieces]
    assert places == sorted(places)


def test_of_lines_that_are_written_together_those_are_told_that_were_written_whole(
    path: Path, reader: RunReader
) -> None:
    file = RunFile(path, "s1")
    file(says(Note("before")))
    size = len(path.read_bytes().splitlines(keepends=True)[-1])
    with no_file_over(path.stat().st_size + 2 * size):
        for number, event in enumerate(spoken("max", 1, [Note("first!"), Note("second"), Note("third!")])):
            assert event.more == (number < 2)
            file(event)
    file(says(Note("after")))
    assert texts(list(reader.read()))[2:] == [
        "NoteLine first!", "NoteLine second", "LeftOutLine 1", "NoteLine after",
    ]  # fmt: skip


@pytest.mark.usefixtures("small")
def test_a_file_that_cannot_be_written_anew_keeps_nobody_from_telling_something(path: Path, tmp_path: Path) -> None:
    file = RunFile(path, "s1")
    file(says(TextDelta("x" * 500)))
    (path.parent / "session-1.new").mkdir()
    file(says(Text("x" * 500)))
    tell_watchers(tmp_path, 1, "s1", Warned("told"))
    assert read(path)[-1] == "Warned told"
