"""The team file changes while somebody is asked and others wait: every command goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import notes, queue, rows, steady, turn
from tests.program import Result, run_here
from tests.scripted_team import Crew, crew

LOOKING = [
    ["log"], ["log", "--json"], ["show"], ["team"], ["usage"], ["sessions"], ["todo"], ["task"],
    ["send", "--dry-run", "And now?"], ["open", "max"],
]  # fmt: skip

RESUMES = "teamchat resume runs it, teamchat resume --drop drops it"


@pytest.fixture
def made(world: Path) -> Crew:
    """max has asked kailai, and sarah waits behind the question."""
    made = crew(world, {"max": ["What do you think? [NEXT: kailai, sarah]", "Thanks."], "sarah": ["Fine."]})
    assert run_here("send", "--to", "max", "Begin").code == 9
    return made


def becomes(made: Crew, old: str, new: str) -> None:
    text = made.file.read_text()
    assert old in text
    made.file.write_text(text.replace(old, new))


CHANGES = {
    "the person has another name": ('name = "kailai"\ntype = "human"', 'name = "kai"\ntype = "human"'),
    "the person is an agent": ('name = "kailai"\ntype = "human"', 'name = "kailai"\nagent = "max-agent"'),
    "the agent is a person": ('name = "max"\nagent = "max-agent"', 'name = "max"\ntype = "human"'),
    "who waits has another name": ('name = "sarah"\nagent', 'name = "sara"\nagent'),
    "who waits works elsewhere": ('name = "sarah"\nagent', 'name = "sarah"\ncwd = "gone"\nagent'),
    "who waits has another agent": ('agent = "sarah-agent"', 'agent = "max-agent"'),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("then", [["send", "I think so"], ["resume"], ["resume", "--skip"], ["resume", "--drop"]])
def test_whatever_changes_every_command_ends_in_words(made: Crew, change: str, then: list[str]) -> None:
    becomes(made, *CHANGES[change])
    for args in (*LOOKING, then, ["resume", "--drop"]):
        ran = run_here(*args, *(["--trust"] if args == then else []))
        assert ran.code in (0, 1, 2, 4, 9), (args, ran)
        assert "Traceback" not in ran.err
    assert queue() == []


def test_the_only_person_there_is_answers_under_another_name(made: Crew) -> None:
    becomes(made, *CHANGES["the person has another name"])
    assert steady(run_here("send", "I think so")) == Result(
        0,
        "max:\nThanks.\n\nsarah:\nFine.\n\n",
        notes("session s1 continues (--new starts another)", *turn("max", 2), *turn("sarah", 3)),
    )


def test_with_several_people_the_question_to_one_who_has_left_is_dropped_with_a_word(made: Crew) -> None:
    becomes(
        made,
        '[[members]]\nname = "kailai"\ntype = "human"',
        '[[members]]\nname = "kai"\ntype = "human"\n[[members]]\nname = "bob"\ntype = "human"',
    )
    assert steady(run_here("send", "--as", "bob", "--to", "max", "I think so")) == Result(
        0,
        "max:\nThanks.\n\n",
        notes(
            "session s1 continues (--new starts another)",
            "kailai, whom max asked, is no longer in the team",
            "dropped: kailai, called by max in msg-2",
            f"still on hold: sarah for msg-2 'What do you think?'; {RESUMES}",
            *turn("max", 2),
        ),
    )


def test_a_call_of_who_has_left_says_how_to_go_on(made: Crew) -> None:
    becomes(made, *CHANGES["who waits has another name"])
    run_here("trust")
    ran = run_here("send", "I think so")
    assert (ran.code, ran.out) == (4, "max:\nThanks.\n\n")
    assert ran.err.endswith(
        notes(
            "failed: no member 'sarah' in team 'crew' (there are: kailai, max, sara); held: sarah",
            "try: teamchat resume --skip",
        )
    )
    assert run_here("resume", "--skip").code == 0


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("nothing", "does not exist; create it, or change cwd in the team file"),
        ("a file", "is not a folder; change cwd in the team file"),
        ("a link to itself", "is not a folder; change cwd in the team file"),
    ],
)
def test_a_folder_that_is_gone_stops_its_member_alone(made: Crew, world: Path, place: str, told: str) -> None:
    if place == "a file":
        Path("gone").touch()
    elif place == "a link to itself":
        Path("gone").symlink_to("gone")
    becomes(made, *CHANGES["who waits works elsewhere"])
    run_here("trust")
    ran = run_here("send", "I think so")
    assert (ran.code, ran.out) == (2, "max:\nThanks.\n\n")
    assert f"failed: sarah's folder {world}/work/gone {told}; held: sarah\n" in ran.err
    assert run_here("resume", "--skip").code == 0


GONE = "max, who asked you, is no longer in the team"


def assert_answer_refused() -> None:
    """`send` names the command that sends the answer to maxim, and changes nothing."""
    before = rows()
    ran = run_here("send", "I think so", "--trust")
    sentence = f"teamchat: {GONE} (--anyway sends your answer to maxim)\n"
    assert (ran.code, ran.err) == (4, f"{sentence}  try: teamchat send --to maxim 'I think so' --trust\n")
    assert rows() == before


def test_an_answer_to_an_agent_that_has_left_is_refused_and_kept_to_be_sent(made: Crew) -> None:
    becomes(made, 'name = "max"', 'name = "maxim"')
    assert_answer_refused()
    assert run_here("send", "--to", "maxim", "I think so", "--trust").out == "maxim:\nThanks.\n\nsarah:\nFine.\n\n"


def test_the_one_who_has_another_name_is_meant_rather_than_the_lead(made: Crew) -> None:
    becomes(made, "[team]\n", '[team]\nlead = "sarah"\n')
    becomes(made, 'name = "max"', 'name = "maxim"')
    ran = run_here("send", "I think so", "--trust")
    assert "  try: teamchat send --to maxim 'I think so' --trust\n" in ran.err


def test_an_answer_that_is_sent_anyway_says_to_whom_it_goes(made: Crew) -> None:
    becomes(made, 'name = "max"', 'name = "zoe"')
    made.say("max", "", "Thanks.")
    ran = run_here("send", "--anyway", "I think so", "--trust")
    assert ran.code == 0
    assert f"· {GONE}; your answer goes to zoe\n" in ran.err


def test_who_asked_is_answered_when_only_the_spelling_of_its_name_changes(made: Crew) -> None:
    becomes(made, 'name = "max"', 'name = "Max"')
    assert run_here("send", "I think so", "--trust").out == "Max:\nThanks.\n\nsarah:\nFine.\n\n"


def test_who_was_asked_and_has_another_name_too_is_told_as_well(made: Crew) -> None:
    becomes(made, 'name = "max"', 'name = "maxim"')
    becomes(made, 'name = "kailai"', 'name = "kai"')
    assert_answer_refused()


@pytest.mark.parametrize(("name", "told"), [("maxim", " (max is no longer in the team)"), ("Max", ""), ("max", "")])
def test_the_log_says_that_who_asked_has_left(made: Crew, name: str, told: str) -> None:
    becomes(made, 'name = "max"', f'name = "{name}"')
    assert run_here("log").err == notes(
        f"asked: kailai, called by max in msg-2{told}", f"waiting: sarah, called by max in msg-2{told}"
    )


@pytest.mark.parametrize("text", ["broken [", '[team]\nname = "other"\n[[members]]\nname = "kai"\ntype = "human"'])
def test_a_broken_or_another_team_file_tells_nothing_of_who_has_left(made: Crew, text: str) -> None:
    made.file.write_text(text)
    assert run_here("log").err == notes(
        "asked: kailai, called by max in msg-2", "waiting: sarah, called by max in msg-2"
    )
