"""The first team of a folder: who is in it by what is installed, and that its file always loads."""

from __future__ import annotations

from itertools import chain, combinations
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teamchat.core.errors import AgentMissing, UsageError
from teamchat.core.routing.names import fold, valid_name
from teamchat.core.team.find import FILE_NAME, load
from teamchat.core.team.init import (
    CREW,
    OFFLINE,
    PANEL,
    NewTeam,
    Seat,
    Template,
    check_free,
    human_name,
    plan,
    write_team,
)
from teamchat.core.team.team import BUILTIN_AGENTS, INSTALL, Team

TEMPLATES: tuple[Template | None, ...] = (None, *get_args(Template))
SUBSETS = tuple(chain.from_iterable(combinations(INSTALL, size) for size in (1, 2, 3)))


def which(*names: str) -> list[str]:
    """The installed CLIs in their usual order."""
    return [spec.name for spec in BUILTIN_AGENTS.values() if spec.name in names]


def made(new: NewTeam, folder: Path) -> Team:
    write_team(new, folder / FILE_NAME, over=True)
    return load(folder / FILE_NAME)


def cast(team: Team) -> list[tuple[str, str | None, str]]:
    return [(member.name, member.agent, member.access) for member in team.ai_members]


@pytest.mark.parametrize("installed", SUBSETS)
@pytest.mark.parametrize("template", TEMPLATES)
def test_every_team_loads(template: Template | None, installed: tuple[str, ...], tmp_path: Path) -> None:
    team = made(plan(template, "phoenix", "kailai", which(*installed)), tmp_path)
    assert (team.name, [human.name for human in team.humans]) == ("phoenix", ["kailai"])
    assert team.lead == team.ai_members[0].name
    if template != "offline":
        assert {agent for _, agent, _ in cast(team)} <= set(installed)


@pytest.mark.parametrize("installed", SUBSETS)
@pytest.mark.parametrize("template", TEMPLATES)
def test_only_writers_may_write(template: Template | None, installed: tuple[str, ...], tmp_path: Path) -> None:
    team = made(plan(template, "phoenix", "kailai", which(*installed)), tmp_path)
    assert {member.name for member in team.ai_members if member.access != "read"} <= {"writer"}
    assert all(member.access in {"read", "edit"} for member in team.ai_members)


@pytest.mark.parametrize("installed", SUBSETS)
@pytest.mark.parametrize("template", TEMPLATES)
def test_what_a_comment_shows_can_be_switched_on(
    template: Template | None, installed: tuple[str, ...], tmp_path: Path
) -> None:
    new = plan(template, "phoenix", "kailai", which(*installed))
    text = "\n".join(
        line.removeprefix("# ") if line.startswith("# ") and " = " in line else line
        for line in new.files[FILE_NAME].splitlines()
    )
    assert text != new.files[FILE_NAME]
    (tmp_path / FILE_NAME).write_text(text)
    assert load(tmp_path / FILE_NAME).task == "Add a login page"


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_team_is_fenced_and_redacts(template: Template | None, tmp_path: Path) -> None:
    team = made(plan(template, "phoenix", "kailai", which(*INSTALL)), tmp_path)
    assert (team.fence, team.redact) == (True, True)


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_first_message_names_members_of_the_team(template: Template | None, tmp_path: Path) -> None:
    new = plan(template, "phoenix", "kailai", which("claude", "gemini"))
    named = {word.removeprefix("[NEXT:").removesuffix("]") for word in new.message.split() if word.startswith("[NEXT:")}
    assert named
    assert named <= {member.name for member in made(new, tmp_path).ai_members}


@pytest.mark.parametrize("name", INSTALL)
def test_one_cli_writes_and_reviews(name: str, tmp_path: Path) -> None:
    team = made(plan(None, "phoenix", "kailai", which(name)), tmp_path)
    assert cast(team) == [("writer", name, "edit"), ("reviewer", name, "read")]


@pytest.mark.parametrize(
    ("installed", "agents"),
    [
        (("claude", "codex"), ["claude", "codex", "claude"]),
        (("codex", "gemini"), ["codex", "gemini", "codex"]),
        (("claude", "codex", "gemini"), ["claude", "codex", "gemini"]),
    ],
)
def test_more_clis_are_spread_over_architect_writer_and_reviewer(
    installed: tuple[str, ...], agents: list[str], tmp_path: Path
) -> None:
    team = made(plan(None, "phoenix", "kailai", which(*installed)), tmp_path)
    assert [(name, access) for name, _, access in cast(team)] == [
        ("architect", "read"),
        ("writer", "edit"),
        ("reviewer", "read"),
    ]
    assert [agent for _, agent, _ in cast(team)] == agents


def test_a_pair_is_of_two_vendors_where_there_are_two(tmp_path: Path) -> None:
    team = made(plan("pair", "phoenix", "kailai", which("codex", "gemini")), tmp_path)
    assert cast(team) == [("writer", "codex", "edit"), ("reviewer", "gemini", "read")]


@pytest.mark.parametrize(
    ("installed", "agents"),
    [
        (("claude", "codex", "gemini"), ["claude", "codex", "gemini"]),
        (("gemini",), ["gemini", "gemini", "gemini"]),
        (("claude", "gemini"), ["claude", "claude", "gemini"]),
    ],
)
def test_the_panel_sits_on_what_is_installed(installed: tuple[str, ...], agents: list[str], tmp_path: Path) -> None:
    team = made(plan("panel", "phoenix", "kailai", which(*installed)), tmp_path)
    assert [member.name for member in team.ai_members] == ["max", "sarah", "carol"]
    assert [member.agent for member in team.ai_members] == agents


@pytest.mark.parametrize("template", [None, "pair", "panel"])
def test_without_any_cli_every_way_on_is_told(template: Template | None) -> None:
    with pytest.raises(AgentMissing) as raised:
        plan(template, "phoenix", "kailai", which())
    assert raised.value.hint
    for way in (*INSTALL.values(), "teamchat demo", "teamchat init --template offline"):
        assert way in raised.value.hint.splitlines()


def test_offline_needs_no_cli(tmp_path: Path) -> None:
    team = made(plan("offline", "phoenix", "kailai", which()), tmp_path)
    assert [team.agent_of(member).command for member in team.ai_members] == [
        ("python3", "agents/planner.py"),
        ("python3", "agents/builder.py"),
        ("python3", "agents/checker.py", "kailai"),
    ]


@settings(max_examples=50, deadline=None)
@given(folder=st.text(), login=st.text())
def test_any_folder_and_any_login_give_a_file_that_loads(
    folder: str, login: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / FILE_NAME  # never beside other tests: they would find it
    for template in TEMPLATES:
        path.write_text(plan(template, folder, login, which(*INSTALL)).files[FILE_NAME], encoding="utf-8")
        assert load(path).humans


@given(login=st.text(), seats=st.sampled_from((CREW, OFFLINE, tuple(seat for seat, _ in PANEL))))
def test_a_person_always_has_a_name_of_their_own(login: str, seats: tuple[Seat, ...]) -> None:
    name = human_name(login, seats)
    assert valid_name(name)
    assert fold(name) not in {fold(word) for seat in seats for word in (seat.name, seat.title) if word}


@pytest.mark.parametrize(
    ("login", "name"),
    [
        ("kailai", "kailai"),
        ("jörg.müller", "jörg.müller"),
        ("CORP\\jane doe", "CORP-jane-doe"),
        ("", "you"),
        ("--", "you"),
        ("all", "you"),
        ("Writer", "you"),
    ],
)
def test_a_login_becomes_a_name(login: str, name: str) -> None:
    assert human_name(login, CREW) == name


def test_a_title_is_taken_too() -> None:
    assert human_name("reviewer", [seat for seat, _ in PANEL]) == "you"


@pytest.mark.parametrize(
    ("template", "compactor"), [(None, "architect"), ("pair", "reviewer"), ("panel", "max"), ("offline", None)]
)
def test_one_who_only_reads_sums_up(template: Template | None, compactor: str | None, tmp_path: Path) -> None:
    team = made(plan(template, "phoenix", "kailai", which(*INSTALL)), tmp_path)
    assert team.compactor == compactor
    assert all(member.title or template == "offline" for member in team.ai_members)


def test_the_file_explains_itself_in_few_words() -> None:
    new = plan(None, "phoenix", "kailai", which("claude", "codex"))
    assert new.files[FILE_NAME] == WRITTEN


@pytest.mark.parametrize(
    ("file", "template", "hint"),
    [
        (FILE_NAME, None, "teamchat init --file teamchat-3.toml\nteamchat init --force"),
        (
            FILE_NAME,
            "offline",
            "teamchat init --template offline --file teamchat-3.toml\nteamchat init --template offline --force",
        ),
        (
            "teamchat-2.toml",
            None,
            "teamchat init --file teamchat-2-2.toml\nteamchat init --file teamchat-2.toml --force",
        ),
    ],
)
def test_a_file_that_is_there_is_somebodys_work(
    file: str, template: Template | None, hint: str, tmp_path: Path
) -> None:
    for name in (FILE_NAME, "teamchat-2.toml"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError) as raised:
        check_free(tmp_path / file, template)
    assert str(raised.value) == (f"{file} already exists; name another file, or replace it, which keeps a copy")
    assert raised.value.hint == hint


def test_a_script_that_is_there_is_somebodys_work_unless_it_is_the_templates_own(tmp_path: Path) -> None:
    made(plan("offline", "phoenix", "kailai", which()), tmp_path)
    (tmp_path / FILE_NAME).unlink()
    check_free(tmp_path / FILE_NAME, "offline")
    (tmp_path / "agents" / "builder.py").write_text("mine")
    check_free(tmp_path / FILE_NAME, None)
    with pytest.raises(UsageError) as raised:
        check_free(tmp_path / FILE_NAME, "offline")
    assert str(raised.value) == "agents/builder.py already exists; --force keeps a copy of it"
    assert raised.value.hint == "teamchat init --template offline --force"
    copies = write_team(plan("offline", "phoenix", "kailai", which()), tmp_path / FILE_NAME, over=True)
    assert [copy.relative_to(tmp_path) for copy in copies] == [Path("agents/builder.py.bak")]
    assert copies[0].read_text() == "mine"


def test_a_link_to_nowhere_is_there_too(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError):
        check_free(tmp_path / FILE_NAME, None)


def test_writing_over_a_link_leaves_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "shared.toml").write_text("shared")
    (tmp_path / FILE_NAME).symlink_to("shared.toml")
    assert made(plan(None, "phoenix", "kailai", which("claude")), tmp_path)
    assert (tmp_path / "shared.toml").read_text() == "shared"
    assert (tmp_path / f"{FILE_NAME}.bak").is_symlink()


def test_nothing_is_written_through_a_link_that_takes_the_folders_place_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    mkdir = Path.mkdir

    def replaced(folder: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        mkdir(folder, mode, parents, exist_ok)
        if folder.name == "agents":
            folder.rmdir()
            folder.symlink_to("elsewhere")

    monkeypatch.setattr(Path, "mkdir", replaced)
    with pytest.raises(UsageError, match=r"/agents/checker\.py cannot be written: Not a directory$"):
        write_team(plan("offline", "phoenix", "kailai", which()), tmp_path / FILE_NAME)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_nothing_is_written_through_a_link_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "agents").symlink_to("elsewhere")
    with pytest.raises(UsageError, match=r"/agents/checker\.py cannot be written: its folder is a link$"):
        write_team(plan("offline", "phoenix", "kailai", which()), tmp_path / FILE_NAME)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_every_copy_has_a_name_of_its_own(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / FILE_NAME).write_text(f"# {number}")
        write_team(plan(None, "phoenix", "kailai", which("claude")), tmp_path / FILE_NAME, over=True)
    kept = {path.name: path.read_text() for path in tmp_path.glob("*bak*")}
    assert kept == {
        "teamchat.toml.bak": "# 0",
        "teamchat.toml-2.bak": "# 1",
        "teamchat.toml-3.bak": "# 2",
        "teamchat.toml-4.bak": "# 3",
    }


def test_what_is_to_be_replaced_stays_where_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / FILE_NAME).write_text("# mine")
    full = OSError(28, "No space left on device")
    monkeypatch.setattr("teamchat.core.team.init._create", lambda *_: (_ for _ in ()).throw(full))
    with pytest.raises(UsageError, match="No space left on device"):
        write_team(plan(None, "phoenix", "kailai", which("claude")), tmp_path / FILE_NAME, over=True)
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
    assert (tmp_path / FILE_NAME).read_text() == "# mine"


def test_what_another_process_has_written_meanwhile_stays(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("# mine")
    with pytest.raises(UsageError, match=r"teamchat\.toml cannot be written: File exists"):
        write_team(plan(None, "phoenix", "kailai", which("claude")), tmp_path / FILE_NAME)
    assert (tmp_path / FILE_NAME).read_text() == "# mine"


def test_the_reviewer_has_git_where_that_works(tmp_path: Path) -> None:
    new = plan(None, "phoenix", "kailai", which("claude", "codex"), git=True)
    line = "# git = true                   # sees what changed: log, diff, show, blame; needs the package mcp\n"
    with_git = "git = true                     # sees what changed: log, diff, show, blame\n"
    assert new.files[FILE_NAME] == WRITTEN.replace(line, with_git)
    assert [member.name for member in made(new, tmp_path).ai_members if member.git] == ["reviewer"]


def test_what_can_not_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(UsageError, match=rf"^{tmp_path}/teamchat.toml cannot be written: .+$"):
        write_team(plan(None, "phoenix", "kailai", which("claude")), tmp_path / FILE_NAME)


WRITTEN = """\
# The team of this folder; `teamchat help team-file` explains every key.

[team]
name = "phoenix"
lead = "architect"             # answers when you name nobody
compactor = "architect"        # summarises long conversations
fence = true                   # no message can pass for another's
# task = "Add a login page"    # every member is told

[team.limits]                  # for each message of yours
turns = 12
minutes = 60

[[members]]
name = "kailai"
type = "human"

[[members]]
name = "architect"             # called by [NEXT: architect]
title = "Software architect"
agent = "claude"
access = "read"                # read, edit or full
system_instruction = "You are the architect. Weigh the options briefly, decide, and tell the writer what to build."

[[members]]
name = "writer"
title = "Developer"
agent = "codex"
access = "edit"
system_instruction = "You write the code, in small steps. Say which files you changed, and hand over to the reviewer."

[[members]]
name = "reviewer"
title = "Code reviewer"
agent = "claude"
access = "read"
# git = true                   # sees what changed: log, diff, show, blame; needs the package mcp
system_instruction = "You review what was written: read the files, and name the worst problem first. \
Hand back to the writer while something must be fixed, else say so and name nobody."
"""
