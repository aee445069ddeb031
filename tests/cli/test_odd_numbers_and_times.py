"""Numbers, times and time zones beyond every range: a code of the table and one line, never a traceback."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teamchat.cli.app import program
from teamchat.core.errors import ExitCode
from teamchat.core.team.schema import (
    ExperienceTable,
    KnowledgeTable,
    LimitsTable,
    MemberTable,
    ProcessTable,
    Table,
    TeamTable,
)
from tests.cli.helpers import HINT, refused
from tests.program import Result, run_here
from tests.scripted_team import crew
from tests.trials import some, trials

ODD = (
    "", " ", "-1", "-0", "0", "1", "+5", "1_000", "٣", "²", "1e400", "-1e400", "inf", "-inf", "nan", "1e-400", "0x10",
    "2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "9" * 4300, "9" * 5000,
    "9999-12-31T23:59:59", "9999-12-31", "0000-00-00", "0001-01-01", "100000-01-01", "2026-02-30", "2026-01-01T25:00",
    "0001-01-01T00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-W99-9", "1e30d", "-1d", "300000000000d",
    "99999999999999d", "9" * 308 + "d", "1e309s", "5m5h", "1d1d", "0.0000001", ".5", "5.", "1,2",
    "msg-9223372036854775808", "msg-" + "9" * 5000, "1..9223372036854775808", "9223372036854775808..1",
    "9" * 5000 + "..1", "#" + "9" * 5000,
)  # fmt: skip
WAIT = {"chat", "demo", "open", "watch", "replay"}  # commands that wait as long as their numbers say, or for a terminal
NEEDED = {
    "adopt": ["max"],
    "compare": ["s1", "s1"],
    "export": ["--format", "cast"],
    "learn": ["--from-session", "--trust", "--yes"],
    "merge": ["max"],
    "retry": ["--trust"],
    "run": ["sequential", "Work", "--trust", "--new"],
    "search": ["Hi"],
    "send": ["--to", "max", "--trust", "Hi"],
    "compact": ["max", "--trust"],
    "test": ["run.cassette"],
}
Option = tuple[str, str, bool]


def options(command: Any, *path: str) -> Iterator[Option]:
    """Every option and argument that takes a value: its command, its name, and whether it is a number or a time."""
    for name, below in getattr(command, "commands", {}).items():
        yield from options(below, *path, name)
    for one in command.params:
        if one.param_type_name == "argument" or not (one.is_flag or one.is_eager):
            name = one.opts[0] if one.param_type_name == "option" else ""
            counts = one.type.name.startswith(("int", "float")) or name in {"--from", "--timeout", "--at", "--full"}
            yield " ".join(path), name, counts or one.metavar in {"TURN", "TURN|TURN..TURN", "MESSAGE"}


OPTIONS = [
    one
    for name in program().list_commands(None)
    if name not in WAIT
    for one in options(program().get_command(None, name), name)
]
NUMBERS = [one for one in OPTIONS if one[2]]
COUNTS = [
    (command, one.opts[0])
    for command in program().list_commands(None)
    for one in program().get_command(None, command).params
    if one.type.name.startswith("int")
]
HUGE = ("9" * 5000, str(2**63), "1e400")
pytestmark = pytest.mark.usefixtures("spoken")


@pytest.fixture
def spoken(world: Path) -> None:
    crew(world, {"max": ["Hi."] * 3000, "sarah": ["Hi."] * 3000}, team={"lead": "max"}, limits={"turns": 10**6})
    assert run_here("send", "-q", "--record", "run.cassette", "--to", "max", "Hi").code == 0


def tried(command: str, name: str, value: str) -> Result:
    given = [f"{name}={value}"] if name.startswith("--") else [name or "--", value]
    needed = NEEDED.get(command, ["1"] if command.startswith(("branch", "import")) else [])
    return run_here(*command.split(), *(needed if name else []), *given)


def assert_told(ran: Result) -> None:
    """It ended in a code of the table, and an error is one line and what to type."""
    assert ran.code in set(ExitCode)
    assert "Traceback" not in ran.err
    lines = ran.err.splitlines()
    if complaints := [at for at, line in enumerate(lines) if line.startswith("teamchat: ")]:
        assert len(complaints) == 1
        assert ran.code != ExitCode.DONE
        assert ran.code == ExitCode.NOT_TRUSTED or all(line.startswith(HINT) for line in lines[complaints[0] + 1 :])


@pytest.mark.parametrize(("command", "name"), [one[:2] for one in NUMBERS])
def test_any_number_and_time_ends_in_a_code_of_the_table(command: str, name: str) -> None:
    for value in some(ODD, *ODD[::3]):
        assert_told(tried(command, name, value))


@pytest.mark.parametrize(
    ("command", "name", "value"),
    [(*one, value) for one in COUNTS for value in some(("9" * 5000, str(2**63), "1e400"), "9" * 5000)],
)
def test_a_number_that_no_store_holds_is_a_usage_error_of_one_line(command: str, name: str, value: str) -> None:
    ran = run_here(*command.split(), *NEEDED.get(command, []), f"{name}={value}")
    assert ran.code == 2
    assert f"'{name}'" in refused(ran)
    assert len(ran.err) < 400


@given(
    st.sampled_from(OPTIONS), st.sampled_from(ODD) | st.integers().map(str) | st.floats().map(str) | st.dates().map(str)
)
@settings(max_examples=trials(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_option_takes_or_refuses_odd_numbers(option: Option, value: str) -> None:
    assert_told(tried(option[0], option[1], value))


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Sets the time zone of this process, and takes it back."""
    with monkeypatch.context() as patched:
        yield patched
    time.tzset()


ZONES = (
    "", ":", ":bad", "bad", "XXX99", "XXX-167:59:59", "XXX-999999999999999999999", "A1", "<>0", "UTC0UTC",
    "/etc/passwd", "../../etc/passwd", ":/dev/null", "/", "EST5EDT,M99.99.99", "EST5EDT,J999/9999", "x" * 10_000,
    "水", "\udcff", "A" * 5000 + "12", "America/New_York", "\n",
)  # fmt: skip
SHOWN = (
    ("log",), ("show",), ("sessions",), ("usage",), ("learn", "A lesson."), ("learn",), ("search", "Hi"), ("export",),
    ("search", "--from", "today", "Hi"), ("search", "--from", "2026-03-29T02:30", "Hi"), ("export", "--format", "html"),
    ("search", "--from", "0001-01-01", "Hi"), ("search", "--from", "9999-12-31", "Hi"), ("search", "--from=1d", "Hi"),
    ("send", "--to", "max", "Hi"), ("log", "--json"), ("worktrees",), ("replay", "run.cassette", "--speed", "0"),
)  # fmt: skip


@pytest.mark.parametrize("name", some(ZONES, *ZONES[::3]), ids=lambda name: ascii(name[:20]))
def test_any_time_zone_lets_every_command_show_its_times(name: str, zone: pytest.MonkeyPatch) -> None:
    zone.setenv("TZ", name)
    time.tzset()
    for words in SHOWN:
        ran = run_here(*words)
        assert_told(ran)
        assert ran.code == ExitCode.DONE or words[:2] == ("search", "--from")
    assert re.search(r"\b20\d\d-\d\d-\d\d \d\d:\d\d\b", run_here("export").out)


WRITTEN = (
    "-1", "0", "1", "0.1", "1e400", "-1e400", "inf", "-inf", "nan", "1e-400", "1e308", "2147483648", "1000000000000",
    "9223372036854775807", "9223372036854775808", "9" * 4300, "9" * 5000, "0x7fffffffffffffff", "true", "[]", "{}",
    '""', '" "', '"٣"', '"1e30d"', '"-1d"', '"99999999999999d"', f'"{"9" * 308}d"', f'"{"9" * 5000}"', '"1 s"', '"0s"',
    "9999-12-31T23:59:59", "9999-12-31T23:59:59-23:59", "0000-00-00", "0001-01-01", "23:59:60", "12:00:00",
)  # fmt: skip
TABLES: dict[str, type[Table]] = {
    "[team]": TeamTable, "[team.limits]": LimitsTable, "[[members]]": MemberTable, "[knowledge]": KnowledgeTable,
    "[experience]": ExperienceTable, "[processes.p]": ProcessTable,
}  # fmt: skip
KEYS = [
    (head, key)
    for head, table in TABLES.items()
    for key, its in table.model_fields.items()
    if re.search(r"\b(int|float)\b", str(its.annotation))
]


@pytest.mark.parametrize(("head", "key"), KEYS)
def test_any_number_of_the_team_file_is_taken_or_refused_in_one_line(head: str, key: str) -> None:
    assert KEYS
    text = Path("teamchat.toml").read_text() + '[knowledge]\n[experience]\n[processes.p]\nkind = "debate"\n'
    place = 'agent = "max-agent"\n' if head == "[[members]]" else f"{head}\n"
    for value in some(WRITTEN, *WRITTEN[::3]):
        Path("teamchat.toml").write_text(text.replace(place, f"{place}{key} = {value}\n", 1))
        shown = run_here("team", "--json")
        assert_told(shown)
        if shown.code == ExitCode.USAGE:
            assert key in refused(shown) or "not TOML: " in shown.err
            continue
        assert shown.code == ExitCode.DONE
        for words in (("send", "--new", "--trust", "--to", "max", "Hi"), ("run", "p", "--new", "--turns", "1", "Go")):
            assert_told(run_here(*words))
