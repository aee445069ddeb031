"""The processes that a team file names."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.core.engine.workflow import NamedProcess, ProcessSettings
from teamchat.core.errors import TeamFileError
from teamchat.core.team.find import load
from teamchat.core.team.team import Team

MEMBERS = """
[[members]]
name = "max"
agent = "claude"

[[members]]
name = "sarah"
agent = "codex"

[[members]]
name = "kai"
type = "human"
"""


def written(folder: Path, text: str) -> Team:
    file = folder / "teamchat.toml"
    file.write_text(MEMBERS + text)
    return load(file)


def mistake(folder: Path, text: str) -> str:
    with pytest.raises(TeamFileError) as wrong:
        written(folder, text)
    where, _, said = str(wrong.value).removeprefix(f"{folder / 'teamchat.toml'}:").partition(" ")
    assert where == "" or where.removesuffix(":").isdigit()
    return said


def test_a_team_names_none_by_default(tmp_path: Path) -> None:
    assert dict(written(tmp_path, "").processes) == {}


def test_every_key_reaches_the_process(tmp_path: Path) -> None:
    team = written(
        tmp_path,
        """
        [processes.review]
        kind = "debate"
        members = ["Sarah", "max"]
        rounds = 3
        lead = "MAX"
        jobs = 1
        prompt = ["Be strict.", "Name the file."]

        [processes.port]
        kind = "mapreduce"
        planner = "max"
        workers = ["sarah"]
        reducer = "max"

        [processes.pick]
        kind = "best"
        judge = "sarah"

        [processes.choose]
        kind = "vote"
        options = ["yes, at once", "no"]
        """,
    )
    review = ProcessSettings(members=("sarah", "max"), rounds=3, lead="max", jobs=1)
    assert dict(team.processes) == {
        "review": NamedProcess("review", "debate", review, "Be strict.\nName the file."),
        "port": NamedProcess("port", "mapreduce", ProcessSettings(planner="max", workers=("sarah",), reducer="max")),
        "pick": NamedProcess("pick", "best", ProcessSettings(judge="sarah")),
        "choose": NamedProcess("choose", "vote", ProcessSettings(options=("yes, at once", "no"))),
    }


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "kind: missing, expected a kind of process such as 'debate'"),
        ('kind = "debate"\nround = 2', "round: unknown key, did you mean 'rounds'?"),
        ('kind = "debate"\nrounds = 0', "rounds: expected at least 1, got 0"),
        ('kind = "debate"\nrounds = 101', "rounds: expected at most 100, got 101"),
        ('kind = "vote"\nrounds = 2', 'rounds: expected only with kind = "sequential" or "debate" or "until"'),
        ('kind = "debate"\njudge = "max"', 'judge: expected only with kind = "best"'),
        ('kind = "debate"\nmembers = ["kai"]', "members: no AI member 'kai', expected one of max, sarah"),
        ('kind = "debate"\nmembers = ["max", "Max"]', "members: expected each once, got 'max' twice"),
        ('kind = "best"\njudge = "mx"', "judge: no AI member 'mx', did you mean 'max'?"),
        ('kind = "vote"\noptions = ["a"]', "options: expected at least two, got one"),
        ('kind = "vote"\noptions = ["a", "a"]', "options: expected each once, got 'a' twice"),
        ('kind = "vote"\noptions = ["a", ""]', "options[1]: expected one line of text, got ''"),
    ],
)
def test_a_mistake_names_the_process_and_the_key(table: str, said: str, tmp_path: Path) -> None:
    assert mistake(tmp_path, f"[processes.x]\n{table}") == f"processes 'x': {said}"


def test_a_mistake_names_the_kinds_that_there_are(tmp_path: Path) -> None:
    kinds = "'sequential', 'hierarchical', 'mapreduce', 'debate', 'vote', 'best' or 'until'"
    said = mistake(tmp_path, '[processes.x]\nkind = "debat"')
    assert said == f"processes 'x': kind: expected {kinds}, got 'debat'"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[processes]\nx = 1", "processes 'x': expected a table, got 1"),
        ('[processes."a b"]\nkind = "vote"', "processes 'a b': expected letters, digits, _ . and -, got 'a b'"),
        ('[processes.vote]\nkind = "vote"', "processes 'vote': expected another name, vote is a kind of process"),
        (
            '[processes.Map-Reduce]\nkind = "vote"',
            "processes 'Map-Reduce': expected another name, mapreduce is a kind of process",
        ),
        (
            '[processes.my-review]\nkind = "debate"\n[processes.MyReview]\nkind = "debate"',
            "processes 'MyReview': the same name as 'my-review' (case, - and _ are ignored)",
        ),
    ],
)
def test_a_name_means_one_process(text: str, said: str, tmp_path: Path) -> None:
    assert mistake(tmp_path, text) == said
