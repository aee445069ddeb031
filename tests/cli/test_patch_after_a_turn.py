"""Under a turn stand the first lines of what it changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_chat import chat, leave, line
from tests.program import run_here
from tests.screens import screen
from tests.shell_team import repository, shell

EDITS = "printf '\\0\\1' > b.bin; echo PASSWORD=1 > prod.env; sed -i s/one/two/ a.py; seq 40 > n.txt"
ROWS = [
    "▌   4 files  a.py +1 −1  b.bin added  n.txt +40  prod.env +1",
    "▌   a.py",
    "▌   @@ -1,2 +1,2 @@",
    "▌    def f():",
    "▌   -    return 'one'",
    "▌   +    return 'two'",
    "▌   n.txt",
    *(f"▌   +{number}" for number in range(1, 7)),
]


@pytest.fixture
def edits(world: Path) -> Path:
    """A repository, and a member that changes a text, a binary file, a file with a secret's name and a long one."""
    repository(world)
    Path("a.py").write_text("def f():\n    return 'one'\n")
    shell(max=EDITS)
    return Path.cwd()


def rows_of(seen: list[str]) -> list[str]:
    begin = next(at for at, row in enumerate(seen) if row.startswith("▌   4 files"))
    return [row for row in seen[begin:] if row.startswith("▌")]


@pytest.mark.parametrize("columns", [80, 120])
def test_its_first_lines_are_shown_and_the_rest_is_folded(edits: Path, columns: int) -> None:
    del edits
    with screen("send", "[NEXT: max] Go", columns=columns, rows=40) as seen:
        rows = rows_of(seen.to_the_end())
    assert rows == [*ROWS, "▌   … 35 more changed lines: teamchat diff 1"]
    assert "PASSWORD" not in "".join(rows)


def test_in_chat_its_command_is_that_of_chat(edits: Path) -> None:
    del edits
    with chat(rows=40) as shown:
        line(shown, "@max Go")
        shown.until(lambda text: "… 35 more changed lines: /diff 1" in text)
        leave(shown)


def test_it_can_be_turned_off_and_a_group_has_none(edits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAMCHAT_DIFFS", "0")
    with screen("send", "[NEXT: max] Go") as seen:
        assert rows_of(seen.to_the_end()) == ROWS[:1]
    monkeypatch.delenv("TEAMCHAT_DIFFS")
    for name in ("n.txt", "b.bin", "prod.env"):
        (edits / name).unlink()
    shell(max="echo 1 > n.txt", sarah="true")
    with screen("send", "--trust", "[NEXT: max + sarah] Go") as seen:
        rows = seen.to_the_end()
    assert any(row.startswith("▌   1 file") for row in rows)
    assert not any(row.startswith("▌   +1") for row in rows)


def test_a_line_cannot_deceive_the_terminal(world: Path) -> None:
    repository(world)
    shell(max="printf 'x\\033[2Jy' > a.txt")
    with screen("send", "[NEXT: max] Go") as seen:
        rows = seen.to_the_end()
    assert rows[6] == "▌   +xy"


def test_piped_output_has_none(edits: Path) -> None:
    del edits
    ran = run_here("send", "[NEXT: max] Go")
    assert "return" not in ran.out + ran.err
