"""Cassettes of strangers: whatever is in one, it is played or refused in one line, and touches nothing."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teamchat.core.cassette.format import parse_cassette, read_cassette
from teamchat.core.errors import ExitCode, UsageError
from tests.cli.helpers import refused
from tests.program import ROOT, Result, run_here
from tests.trials import trials

DEMO = files("teamchat.cli").joinpath("demo.cassette").read_text(encoding="utf-8").splitlines()
SHIP = (ROOT / "examples" / "ship" / "ship.cassette").read_text(encoding="utf-8").splitlines()
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m"
NASTY: list[Any] = [
    None, True, -1, 10**30, 1e308, "", "x" * 10_000, ESCAPES, "../../../../etc/passwd", "/etc/passwd", "\0", "\ud800",
    [], {}, [[]], {"a": None}, "[NEXT: max]", "out64", "!!!",
]  # fmt: skip
WATCHED = ("subprocess.Popen", "os.fork", "os.exec", "os.posix_spawn", "os.system", "socket.connect")
CHANGING = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.symlink", "os.link", "os.truncate")


class Watch:
    """Notes what is done to the machine. A hook cannot be taken out again, so there is one, switched on and off."""

    def __init__(self) -> None:
        self.allowed: Path | None = None
        self.seen: list[str] = []

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.allowed is None:
            return
        writes = event == "open" and isinstance(args[1], str) and bool(set(args[1]) & set("wax+"))
        outside = (writes or event in CHANGING) and not self._inside(args[0], self.allowed)
        if outside or event in WATCHED:
            self.seen.append(f"{event} {args}")

    def _inside(self, name: object, folder: Path) -> bool:
        # rmtree names files relative to an open folder
        return isinstance(name, int) or Path(str(name)).is_relative_to(folder) or not Path(str(name)).is_absolute()


WATCH = Watch()
sys.addaudithook(WATCH)


@cache
def warm() -> None:
    """Nothing is imported for the first time under watch: that writes."""
    run_here("demo", "--speed", "0")
    run_here("replay", "--speed", "0", "--verify", "nothing")
    run_here("replay", "--speed", "0", "--verify", ROOT / "examples" / "ship" / "ship.cassette")


def lines() -> list[dict[str, Any]]:
    """A cassette of one input and one turn; of the second one there is no recording."""
    return [json.loads(line) for line in DEMO[:3]]


def text(entries: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def assert_plays_harmlessly(entries: str) -> Result:
    """Play it, and see that it does nothing but in its temporary store, of which nothing is left."""
    warm()
    file, folder = Path("a.cassette"), Path(tempfile.gettempdir())
    file.write_text(entries, encoding="utf-8")
    WATCH.seen, WATCH.allowed = [], folder
    try:
        ran = run_here("replay", "--speed", "0", "--verify", file)
    finally:
        WATCH.allowed = None
    assert WATCH.seen == []
    assert list(folder.iterdir()) == []
    assert ran.code in set(ExitCode)
    assert "Traceback" not in ran.err
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", ran.out + ran.err)
    return ran


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a JSON value, as its container and its key there."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


def values(entries: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    short = [entry for entry in entries if "turn" not in entry]
    turn = entries[2]["turn"]
    turn["output"], output = turn["output"][:3], turn["output"][3:]
    found = [place for entry in [*short, turn] for place in places(entry)]
    turn["output"] += output
    return found


@settings(max_examples=trials(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_value_in_any_place_is_played_or_refused_and_does_no_harm(data: st.DataObject) -> None:
    entries = lines()
    container, key = data.draw(st.sampled_from(values(entries)))
    container[key] = data.draw(st.sampled_from(NASTY))
    ran = assert_plays_harmlessly(text(entries))
    if ran.code == ExitCode.USAGE:
        notes = re.compile("^· .*\n", re.MULTILINE)  # it may have begun to play
        refused(Result(ran.code, ran.out.partition("$ teamchat")[0], notes.sub("", ran.err)))


@settings(max_examples=trials(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_value_in_any_place_of_a_process_with_checks_does_no_harm(data: st.DataObject) -> None:
    entries = [json.loads(line) for line in SHIP[:5]]
    header, human, _, check, _ = entries
    container, key = data.draw(st.sampled_from([*places(header["team"]["checks"]), *places(human), *places(check)]))
    container[key] = data.draw(st.sampled_from(NASTY))
    assert_plays_harmlessly(text(entries))


def test_an_input_without_text_is_refused_where_it_is_played() -> None:
    entries = lines()
    entries[1]["human"]["text"] = ""
    ran = assert_plays_harmlessly(text(entries))
    assert ran.code == ExitCode.USAGE
    assert "\nteamchat: input 1 of the recording cannot be played: there is nothing to send\n" in ran.err


@given(st.integers(0, 2000), st.binary(min_size=1, max_size=4))
def test_damaged_bytes_are_one_line_with_its_number(
    tmp_path_factory: pytest.TempPathFactory, at: int, new: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "damaged.cassette"
    whole = text(lines()).encode()
    place = at * len(whole) // 2000
    file.write_bytes(whole[:place] + new + whole[place + len(new) :])
    with contextlib.suppress(UsageError):
        read_cassette(file)
        return
    with pytest.raises(
        UsageError, match=r"damaged\.cassette is not a cassette of this version: line \d+: .+\Z"
    ) as raised:
        read_cassette(file)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ('{"human": {"text": "a"', "not JSON"),
        ("", "not JSON"),
        ('{"resume": {"mode": "again"}}', "resume.mode: Input should be 'retry', 'skip' or 'drop'"),
        ('{"human": {"text": "a"}, "resume": {}}', "expected one of human, resume, turn, check and end"),
        (DEMO[0], "cassette: Extra inputs are not permitted"),
        ("{}", "line 3: expected one of human, resume, turn, check and end"),
        ('{"human": {"text": "a"}, "end": null, "x": 1}', "x: Extra inputs are not permitted"),
        ('{"human": {"text": "\\ud800"}}', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"human": ' * 50_000, "not JSON"),
        ('{"turn": {"member": "max", "agent": "plain", "system": null, "stdin": ""}}', "expected either an exit_code"),
        ('{"human": {"text": "a", "\\u001b[2J": 1}}', r"human.\x1b[2J: Extra inputs are not permitted"),
    ],
)
def test_what_is_wrong_is_told(line: str, wrong: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_cassette(f"{DEMO[0]}\n{DEMO[1]}\n{line}\n", "x")
    assert str(caught.value).startswith("x is not a cassette of this version: line 3: ")
    assert wrong in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_line_in_the_wrong_place_is_told() -> None:
    for order, wrong in (((2,), "line 2: a turn"), ((7,), "line 2: an end"), ((1, 7, 2), "line 4: a turn")):
        with pytest.raises(UsageError, match=f"{wrong} without an input before it"):
            parse_cassette("\n".join([DEMO[0], *(DEMO[number] for number in order)]), "x")


def test_another_version_is_called_by_its_number() -> None:
    with pytest.raises(UsageError, match=r"^x is not a cassette of this version: line 1: version 2\Z"):
        parse_cassette(DEMO[0].replace('"cassette": 1', '"cassette": 2'), "x")


def test_a_resume_where_nothing_waits_is_refused_where_it_is_played() -> None:
    ran = assert_plays_harmlessly(text([lines()[0], {"resume": {}}]))
    assert ran.code == ExitCode.USAGE
    assert ran.err.endswith("input 1 of the recording cannot be played: nothing is waiting in this conversation\n")


def turn_with(**changes: Any) -> str:
    entries = lines()
    entries[2]["turn"] |= changes
    return text(entries)


@pytest.mark.parametrize(
    "changes",
    [
        {"output": [[float("nan"), "out", ""]]},
        {"output": [[-1, "out", ""]]},
        {"output": [[0, "out64", "no base64"]]},
        {"output": [[0, "in", ""]]},
        {"seconds": float("inf")},
        {"exit_code": None},
        {"error": {"kind": "missing", "text": "x"}},
        {"agent": "other"},
        {"at": -1},
        {"over_limit": -1},
    ],
)
def test_a_turn_that_can_not_have_been_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="line 3: turn"):
        parse_cassette(turn_with(**changes), "x")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", "a\x1b[2Jb"),
        ("name", "all"),
        ("title", "a\nb"),
        ("agent", "nobody"),
        ("name", "kai"),
        ("fallback", ["x"]),
    ],
)
def test_a_team_is_held_to_what_a_team_file_may_say(key: str, value: object) -> None:
    entries = lines()
    entries[0]["team"]["members"][1][key] = value
    with pytest.raises(UsageError, match="line 1: team"):
        parse_cassette(text(entries), "x")


@pytest.mark.parametrize(
    "checks",
    [
        {"a b": {"name": "a b", "command": "x"}},
        {"a": {"name": "b", "command": "x"}},
        {"a": {"name": "a", "command": ""}},
        {"a": {"name": "a", "command": []}},
        {"a": {"name": "a", "command": 1}},
        {"a": {"name": "a", "command": "x", "typed": True}},
        {"a": {"name": "a", "command": "x", "needs": ["b"]}},
        {"a": {"name": "a", "command": "x", "needs": ["a"]}},
        {"a": {"name": "a", "command": "x"}, "A": {"name": "A", "command": "x"}},
    ],
)
def test_checks_are_held_to_what_a_team_file_may_say(checks: object) -> None:
    entries = lines()
    entries[0]["team"]["checks"] = {"a": {"name": "a", "command": "x"}}
    parse_cassette(text(entries), "x")
    entries[0]["team"]["checks"] = checks
    with pytest.raises(UsageError, match="line 1: team"):
        parse_cassette(text(entries), "x")


def test_nothing_that_is_shown_can_move_a_terminal() -> None:
    entries = lines()
    entries[0]["label"] = ESCAPES
    entries[1]["human"]["text"] += ESCAPES
    entries[2]["turn"]["stdin"] += f"{ESCAPES} is not what it is told"
    entries[2]["turn"]["output"] = [[0, "err", ESCAPES + "\n"]]
    ran = assert_plays_harmlessly(text(entries))
    assert ran.code == ExitCode.NO_RECORDING
    assert "the nearest one differs" in ran.err


def test_folders_that_it_names_are_never_looked_at(world: Path) -> None:
    entries = lines()
    for member in entries[0]["team"]["members"]:
        member |= {"cwd": "../../../../" + str(world / "home"), "instruction_file": "/etc/passwd"}
    entries[2]["turn"]["cwd"] = "/etc"
    assert assert_plays_harmlessly(text(entries)).code == ExitCode.NO_RECORDING  # sarah's, behind what max said


@pytest.mark.parametrize("make", ["folder", "pipe", "missing", "huge"])
def test_what_is_no_ordinary_file_is_not_read(make: str) -> None:
    file = Path("a.cassette")
    match make:
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "huge":
            with file.open("wb") as sparse:
                sparse.truncate(2 << 30)
    ran = run_here("replay", file)
    assert ran.code == ExitCode.USAGE
    assert refused(ran).startswith("the cassette a.cassette cannot be read: ")


def test_a_very_long_prompt_that_differs_is_still_told_at_once() -> None:
    entries = lines()
    entries[2]["turn"]["stdin"] = "\n".join(f"line {number}" for number in range(60_000))
    assert assert_plays_harmlessly(text(entries)).code == ExitCode.NO_RECORDING


def test_a_time_of_years_is_refused_and_a_long_silence_is_cut(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in DEMO]
    turn = next(line["turn"] for line in lines if "turn" in line)
    file = tmp_path / "slow.cassette"

    def replayed(seconds: float) -> Result:
        turn["seconds"] = seconds
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        return run_here("replay", str(file), "--speed", "1000")

    ran = replayed(1e12)
    assert (ran.code, "seconds" in refused(ran)) == (2, True)
    assert replayed(2_678_400).code == ExitCode.HUMAN_ASKED  # 45 minutes at this speed
