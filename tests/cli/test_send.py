"""`teamchat send`: what it prints, whom it addresses, and in which session."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from teamchat.core.messages import Span
from teamchat.core.routing import markers
from tests.cli.helpers import actors, notes, objects, rows, said, steady, turn
from tests.program import Result, cli, run_here
from tests.runners.processes import Pids
from tests.scripted_team import crew

BEGINS, GOES_ON = "session s1 begins", "session s1 continues (--new starts another)"


def test_replies_are_blocks_on_stdout_and_how_it_goes_is_on_stderr(world: Path) -> None:
    crew(world, {"max": ["Plan.\n\n  1. think\n[NEXT: sarah]"], "sarah": ["Done."]})
    ran = cli("send", "[NEXT:max] Go")
    assert steady(ran) == Result(
        0,
        "max:\nPlan.\n\n  1. think\n[NEXT: sarah]\n\nsarah:\nDone.\n\n",
        notes(BEGINS, *turn("max", 1), *turn("sarah", 2)),
    )


def test_the_markers_of_each_message_are_looked_for_once(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crew(world, {"max": ["`Plan`.\n[NEXT: sarah]"], "sarah": ["Only `here`."]})
    read: list[str] = []

    def counting(text: str, author: markers.Author, pasted: tuple[Span, ...]) -> tuple[markers.Marker, ...]:
        read.append(text)
        return scan(text, author, pasted)

    scan = markers.scan
    monkeypatch.setattr(markers, "scan", counting)
    assert run_here("send", "[NEXT: max] Count `once`").code == 0
    assert sorted(filter(None, read)) == sorted(str(text) for _, text in said())


def test_a_reply_that_names_nobody_lets_the_queue_go_on(world: Path) -> None:
    crew(world, {"max": ["One."], "sarah": ["Two."], "carol": ["Three."]})
    ran = run_here("send", "[NEXT:max, carol] [NEXT:sarah !P1] Go")
    assert ran.out == "sarah:\nTwo.\n\nmax:\nOne.\n\ncarol:\nThree.\n\n"


def test_quiet_is_the_bare_last_reply_without_its_markers(world: Path) -> None:
    crew(world, {"max": ["First.\n[NEXT: sarah]"], "sarah": ["Yes, \x1b[1mdone\x1b[0m.\n[DROP: ALL]"]})
    assert run_here("send", "[NEXT:max] Go", "--quiet") == Result(0, "Yes, done.\n", "")


def test_quiet_still_says_what_an_agent_dropped_and_what_it_could_not(world: Path) -> None:
    crew(world, {"max": ["[NEXT: carol] Both?"], "sarah": ["[DROP: ALL] Alone."], "carol": ["Here."]})
    ran = run_here("send", "-q", "[NEXT: max, sarah, carol] Go")
    told = notes("dropped: carol, called by max in msg-2", "sarah cannot drop carol, whom kailai called in msg-1")
    assert ran == Result(0, "Here.\n", told)


def test_a_marker_that_nobody_sees_is_refused_in_a_persons_message_and_told_in_an_agents(world: Path) -> None:
    crew(world, {"max": ["\x1b]0;[NEXT: sarah]\x07Hi\u200b.\U000e0041", "Well."], "sarah": []})
    ran = run_here("send", "[NEXT: m\u200bax] Go")
    assert (ran.code, ran.err.splitlines()[0]) == (
        4,
        "teamchat: '[NEXT: m\\u200bax]' is not wholly visible, so it is not a marker",
    )
    ran = run_here("send", "-q", "[NEXT: max] Go")
    assert ran == Result(
        0, "Hi\\u200b.\\U000e0041\n", notes("max: '[NEXT: sarah]' is not wholly visible, so it is not a marker")
    )


def test_quiet_still_says_why_it_stopped(world: Path) -> None:
    crew(world, {"max": ["May I?\n[NEXT: kailai]"]})
    ran = run_here("send", "-q", "[NEXT:max] Go")
    assert ran == Result(9, "May I?\n", notes("waiting: max asks kailai", "answer: teamchat send 'Your answer'"))


def test_an_answer_goes_to_whoever_asked(world: Path) -> None:
    crew(world, {"max": ["May I?\n[NEXT: kailai]", "Thanks."], "sarah": []}, team={"lead": "sarah"})
    assert run_here("send", "--to", "max", "Go").code == 9
    ran = run_here("send", "Yes")
    assert steady(ran) == Result(0, "max:\nThanks.\n\n", notes(GOES_ON, *turn("max", 2)))
    assert said()[-2:] == [("kailai", "Yes"), ("max", "Thanks.")]


def test_with_several_people_the_hint_says_as_whom_to_answer(world: Path) -> None:
    made = crew(world, {"max": ["May I?\n[NEXT: mia]", "Thanks."]}, humans=("kailai", "mia"))
    asked = run_here("send", "--as", "kailai", "--to", "max", "--quiet", "Go")
    assert asked.err == notes("waiting: max asks mia", "answer: teamchat send --as mia 'Your answer'")
    assert run_here("send", "--as", "mia", "Yes").code == 0
    assert "from mia, below." in made.prompts("max")[1]


@pytest.mark.parametrize(
    ("to", "order"),
    [
        ("max,sarah", ["max", "sarah"]),
        ("sarah, max", ["sarah", "max"]),
        ("max+sarah", ["max", "sarah"]),
        ("MAX、sa-rah", ["max", "sarah"]),
        ("max, sarah !P1", ["sarah", "max"]),
        ("The Architect", ["max"]),
    ],
)
def test_to_says_who_speaks(world: Path, to: str, order: list[str]) -> None:
    crew(world, {"max": ["One."], "sarah": ["Two."]}, members={"max": {"title": "The Architect"}})
    assert run_here("send", "--to", to, "Go").code == 0
    assert [name for name, _ in said()[1:]] == order


def test_to_may_be_given_several_times(world: Path) -> None:
    crew(world, {"max": ["One."], "sarah": ["Two."]})
    assert run_here("send", "--to", "sarah", "--to", "max", "Go").code == 0
    assert [name for name, _ in said()[1:]] == ["sarah", "max"]


def test_to_speaks_before_markers(world: Path) -> None:
    crew(world, {"max": ["One."], "sarah": ["Two."]})
    assert run_here("send", "--to", "sarah", "[NEXT:max] Go").code == 0
    assert [name for name, _ in said()] == ["kailai", "sarah", "max"]


def test_a_message_that_names_nobody_goes_to_the_lead(world: Path) -> None:
    crew(world, {"max": [], "sarah": ["Me."]}, team={"lead": "sarah"})
    assert run_here("send", "--quiet", "Who leads?") == Result(0, "Me.\n", "")


def test_as_and_from_say_who_speaks(world: Path) -> None:
    crew(world, {"max": ["One.", "Two.", "Three.", "Four."]}, humans=("kailai", "Mia-Li"))
    named = ["--as", "kailai", "Hi"]
    for args in (named, ["--as", "mia li", "Hi"], ["[FROM: mia_li] Hi"], ["--as", "Mia-Li", "[FROM: MIALI] Hi"]):
        assert run_here("send", "--to", "max", *args).code == 0
    assert [name for name, _ in said() if name != "max"] == ["kailai", "Mia-Li", "Mia-Li", "Mia-Li"]


def test_messages_are_stored_as_they_were_said_and_sent_without_markers(world: Path) -> None:
    made = crew(world, {"max": ["Yes."]})
    text = "[FROM: kailai]\nTabs\tand  spaces\n\n\n```\n[NEXT: nobody]\n```\n[NEXT: max] 你好 \u202e \U0001f600"
    assert run_here("send", text).code == 0
    assert said()[0] == ("kailai", text)
    assert "Tabs\tand  spaces\n\n\n```\n[NEXT: nobody]\n```\n你好 \u202e \U0001f600" in made.prompts("max")[0]


def test_a_message_may_begin_with_a_dash(world: Path) -> None:
    crew(world, {"max": ["Yes."]})
    assert run_here("send", "--quiet", "--", "- item").code == 0
    assert said()[0] == ("kailai", "- item")


def test_the_task_marker_sets_the_task_and_drop_takes_routes_out(world: Path) -> None:
    crew(world, {"max": ["One.", {"exit": 3}, "Three."]}, team={"task": "Old"})
    assert run_here("task").code == 4  # there is no session yet, and so no task
    assert run_here("send", "[TEAM_TASK: New] Go").code == 0
    assert run_here("task").out == "New\n"
    assert run_here("send", "Fail").code == 1
    assert run_here("send", "[DROP: max] [NEXT: max] Again").code == 0
    assert run_here("resume").code == 2  # nothing was left


class TestSessions:
    @pytest.fixture(autouse=True)
    def max(self, world: Path) -> None:
        crew(world, {"max": [f"Reply {number}." for number in range(1, 9)]})

    def names(self) -> list[object]:
        return [line["name"] for line in objects(run_here("sessions", "--json"))]

    def test_the_last_one_goes_on_and_new_begins_another(self) -> None:
        assert BEGINS in run_here("send", "Hi").err
        assert GOES_ON in run_here("send", "Hi").err
        assert "session s2 begins\n" in run_here("send", "--new", "Hi").err
        assert "session s2 continues" in run_here("send", "Hi").err
        assert self.names() == ["s2", "s1"]
        assert len(said()) == 4

    def test_a_named_one_is_created_with_new(self) -> None:
        assert "session login begins\n" in run_here("send", "--new", "--session", "login", "Hi").err
        assert "session other begins\n" in run_here("send", "--session", "other", "--new", "Hi").err
        assert "session login continues" in run_here("send", "--session", "login", "Hi").err
        assert "session login continues" in run_here("send", "Hi").err
        assert self.names() == ["login", "other"]

    def test_a_named_one_that_is_missing_is_refused(self) -> None:
        run_here("send", "--new", "--session", "login", "Hi")
        run_here("send", "--new", "--session", "deploy", "Hi")
        before = rows()
        for name, told in (("logn", ": did you mean login?"), ("xyz", " (sessions: deploy, login)")):
            assert run_here("send", "--session", name, "Hi there", "--quiet") == Result(
                4,
                "",
                f"teamchat: there is no session '{name}'{told}\n"
                f"  try: teamchat send --new --session {name} 'Hi there' --quiet\n",
            )
        assert rows() == before

    def test_one_of_the_environment_that_is_missing_is_refused_likewise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEAMCHAT_SESSION", "login page")
        assert run_here("send", "Hi") == Result(
            4,
            "",
            "teamchat: there is no session 'login page' (sessions: none yet)\n"
            "  try: teamchat send --new --session 'login page' Hi\n",
        )
        assert run_here("send", "--new", "Hi").code == 0
        assert self.names() == ["login page"]

    def test_the_environment_names_one_and_the_option_rules(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEAMCHAT_SESSION", "from the environment")
        assert "session from the environment begins" in run_here("send", "--new", "Hi").err
        assert "session other begins" in run_here("send", "--new", "--session", "other", "Hi").err
        assert "session from the environment continues" in run_here("send", "Hi").err
        monkeypatch.setenv("TEAMCHAT_SESSION", "")
        assert "session from the environment continues" in run_here("send", "Hi").err

    def test_new_does_not_begin_what_is_there(self) -> None:
        run_here("send", "--new", "--session", "login", "Hi")
        before = rows()
        assert run_here("send", "--session", "login", "--new", "Hi") == Result(
            2, "", "teamchat: session 'login' already exists\n  try: teamchat send --session login Hi\n"
        )
        assert rows() == before

    def test_each_folder_has_its_own(self, world: Path) -> None:
        run_here("send", "Hi")
        (world / "work" / "sub").mkdir()
        assert GOES_ON in cli("send", "Hi", cwd=world / "work" / "sub").err  # the team file's folder is the workspace
        (world / "work" / "sub" / "teamchat.toml").write_bytes(Path("teamchat.toml").read_bytes())
        assert BEGINS in cli("send", "--trust", "Hi", cwd=world / "work" / "sub").err


def test_a_known_name_runs_beside_an_unknown_one_with_a_warning(world: Path) -> None:
    crew(world, {"max": ["Here."]})
    ran = run_here("send", "--to", "mex,max", "Hi")
    assert steady(ran) == Result(
        0, "max:\nHere.\n\n", notes(BEGINS, "nobody is called 'mex': did you mean max?", *turn("max", 1))
    )


def test_what_was_probably_meant_as_a_marker_is_a_hint_and_not_obeyed(world: Path) -> None:
    crew(world, {"max": ["Done.\nNEXT: sarah"], "sarah": []})
    ran = run_here("send", "-", stdin="@max can you look?")
    assert ran.out == "max:\nDone.\nNEXT: sarah\n\n"
    assert "· '@max' is not a marker and does nothing: did you mean [NEXT: max]?\n" in ran.err
    assert "· max: 'NEXT: sarah' is not a marker and does nothing: did you mean [NEXT: sarah]?\n" in ran.err


def test_a_message_of_markers_only_leaves_a_question_open(world: Path) -> None:
    made = crew(world, {"max": ["May I?\n[NEXT: kailai]", "Thanks."], "sarah": ["Hi."]})
    assert run_here("send", "--to", "max", "Go").code == 9
    ran = run_here("send", "[NEXT: sarah]")
    assert (ran.code, ran.out) == (9, "sarah:\nHi.\n\n")
    assert ran.err.endswith(notes("waiting: max asks kailai", "answer: teamchat send 'Your answer'"))
    assert run_here("send", "Yes").out == "max:\nThanks.\n\n"
    assert said()[2] == ("kailai", "[NEXT: sarah]")
    assert "[NEXT: sarah]" not in made.prompts("max")[1].partition("May I?")[2]


@pytest.mark.parametrize("options", [[], ["--new"], ["--new", "--session", "other"], ["--dry-run"]])
def test_a_message_of_markers_only_opens_no_conversation(world: Path, options: list[str]) -> None:
    crew(world, {"max": []})
    ran = run_here("send", *options, "[NEXT: max]")
    assert ran.code == 2
    where = "".join(f" {option}" for option in options if option != "--dry-run")
    assert ran.err == (
        "teamchat: nothing was said yet that max could answer, and the message has only markers\n"
        f"  try: teamchat send --to max -{where}\n"
    )
    assert (rows()["sessions"], rows()["messages"], rows()["routes"]) == ([], [], [])


def test_an_unknown_name_in_a_reply_is_a_warning(world: Path) -> None:
    crew(world, {"max": ["[NEXT: sara] [NEXT: max] Go"], "sarah": []})
    begin, end = turn("max", 1)
    assert steady(run_here("send", "--to", "max", "Hi")) == Result(
        0,
        "max:\n[NEXT: sara] [NEXT: max] Go\n\n",
        notes(
            BEGINS, begin, "max: nobody is called 'sara': did you mean sarah?", "max: max named itself: ignored", end
        ),
    )


def test_a_pair_that_never_ends_is_stopped_by_the_guard_and_resume_goes_on(world: Path) -> None:
    crew(world, {"max": ["Ping [NEXT: sarah]"] * 9, "sarah": ["Pong [NEXT: max]"] * 9}, limits={"turns": 3})
    ran = run_here("send", "--quiet", "[NEXT: max] Go")
    assert ran == Result(
        7,
        "Ping\n",
        notes("paused: 3 turns since the last human message (limits.turns); held: sarah", "try: teamchat resume"),
    )
    again = run_here("resume", "--quiet")
    assert (again.code, again.out) == (7, "Pong\n")
    assert [name for name, _ in said()] == ["kailai", "max", "sarah", "max", "sarah", "max", "sarah"]


def test_time_is_a_guard_too(world: Path) -> None:
    crew(world, {"max": ["Ping [NEXT: sarah]"], "sarah": []}, limits={"minutes": 0.000001})
    ran = run_here("send", "--quiet", "[NEXT: max] Go")
    assert ran.code == 7
    assert "minutes since the last human message (limits.minutes)" in ran.err


def test_held_routes_are_named_and_left(world: Path) -> None:
    crew(world, {"max": [{"exit": 3}], "sarah": ["Here."]})
    assert run_here("send", "--to", "max", "Hi").code == 1
    ran = run_here("send", "--to", "sarah", "Hi")
    held = "still on hold: max for msg-1 'Hi'; teamchat resume runs it, teamchat resume --drop drops it"
    assert steady(ran) == Result(0, "sarah:\nHere.\n\n", notes(GOES_ON, held, *turn("sarah", 2)))


def test_what_an_agent_leaves_behind_is_ended(pids: Pids) -> None:
    actors({"max": ["reply", "Hi", "+", "grandchild"]})
    assert run_here("send", "Hi").code == 0
    assert len(pids.all()) == 2
    assert pids.alive() == []


class TestAGroup:
    def test_one_that_fails_stops_nobody_else_of_it_and_is_held(self, world: Path) -> None:
        crew(world, {"max": ["One."], "sarah": [{"say": "half", "exit": 3}, "Two."], "carol": ["Three."]})
        ran = run_here("send", "--to", "max+sarah,carol", "Hi")
        assert (ran.code, ran.out) == (6, "max:\nOne.\n\n")
        assert ran.err.endswith(
            notes("failed: sarah ended with exit code 3; held: sarah, carol", "try: teamchat resume")
        )
        assert run_here("resume").out == "sarah:\nTwo.\n\ncarol:\nThree.\n\n"

    def test_all_of_it_failing_is_a_failure_as_of_one(self, world: Path) -> None:
        crew(world, {"max": [{"exit": 3}], "sarah": [{"exit": 4}]})
        both = "failed: max ended with exit code 3; sarah ended with exit code 4; held: max, sarah"
        assert run_here("send", "--quiet", "--to", "max+sarah", "Hi") == Result(
            1, "", notes(both, "try: teamchat resume")
        )

    def test_its_replies_come_in_the_order_named(self, world: Path) -> None:
        crew(world, {"max": [{"say": "Slow.", "hang": 0.3}], "sarah": ["Quick."]})
        assert run_here("send", "[NEXT: max + sarah] Hi").out == "max:\nSlow.\n\nsarah:\nQuick.\n\n"


def test_a_spent_budget_pauses_it_and_resume_grants_as_much_again(world: Path) -> None:
    crew(world, {"max": ["One.", "Two.", "Three."]}, like={"max": "claude"}, limits={"cost_usd": 0.4})
    assert run_here("send", "Hi").code == run_here("send", "Hi").code == 0
    ran = run_here("send", "--quiet", "Hi")
    assert ran == Result(8, "", notes("paused: $0.50 are spent (limits.cost_usd); held: max", "try: teamchat resume"))
    assert run_here("resume", "--quiet").out == "Three.\n"


def test_of_a_group_that_stands_in_line_nobody_begins_once_the_budget_is_spent(world: Path) -> None:
    said = {"max": ["One."], "sarah": ["Two."], "carol": ["Three."]}
    writes = {name: {"access": "edit"} for name in said}
    crew(world, said, like=dict.fromkeys(said, "claude"), limits={"tokens": 100}, members=writes)
    ran = run_here("send", "--quiet", "--to", "max+sarah+carol", "Hi")
    assert (ran.code, ran.out) == (8, "")
    assert ran.err.endswith(
        notes("paused: 120 tokens are spent (limits.tokens); held: max, sarah, carol", "try: teamchat resume")
    )
    assert run_here("resume").code == 8
    assert run_here("resume").out == "max:\nOne.\n\nsarah:\nTwo.\n\ncarol:\nThree.\n\n"


def test_members_that_speak_at_the_same_time_share_what_is_left_of_the_budget(world: Path) -> None:
    said = {"max": ["One.", "Four."], "sarah": ["Two."], "carol": ["Three. [NEXT: max]"]}
    crew(world, said, like=dict.fromkeys(said, "claude"), limits={"cost_usd": 3.0})
    assert run_here("send", "--to", "max+sarah+carol", "Hi").code == 0
    shown = [run_here("show", str(number)).out for number in range(1, 5)]
    assert [text.split("--max-budget-usd ")[1].split()[0] for text in shown] == ["1.0000", "1.0000", "1.0000", "2.2500"]


def test_a_cli_that_ends_at_its_own_limit_of_cost_counts_as_the_budget(world: Path) -> None:
    over = {"type": "result", "subtype": "error_max_budget_usd", "errors": ["Reached maximum budget ($0.4)"]}
    crew(world, {"max": [{"say": json.dumps(over), "exit": 1}], "sarah": []})
    team = Path("teamchat.toml")
    team.write_text(team.read_text().replace('like = "plain"', 'like = "claude"', 1))
    ran = run_here("send", "--trust", "--quiet", "--to", "max,sarah", "Hi")
    told = "failed: max used up its budget: Reached maximum budget ($0.4); held: max, sarah"
    assert ran == Result(8, "", notes(told, "try: teamchat resume"))


def test_a_pair_that_says_nothing_new_is_stopped_before_its_turns_are_used_up(world: Path) -> None:
    crew(world, {"max": ["Ping [NEXT: sarah]"] * 9, "sarah": ["Pong [NEXT: max]"] * 9})
    ran = run_here("send", "--quiet", "[NEXT: max] Go")
    assert ran.code == 7
    assert ran.err == notes(
        "paused: the last 4 replies said nothing new (limits.rounds); held: max", "try: teamchat resume"
    )


def test_bare_words_are_the_message_and_options_may_stand_between(world: Path) -> None:
    crew(world, {"max": ["Done."]})
    assert run_here("send", "Fix", "--to", "max", "the bug,", "please", "--quiet").out == "Done.\n"
    assert said()[0] == ("kailai", "Fix the bug, please")


class TestNearMisses:
    """What a person probably meant as a call is refused where the message would go to somebody else."""

    @pytest.fixture(autouse=True)
    def team(self, world: Path) -> None:
        crew(world, {"max": ["Me."], "sarah": ["Mine."]}, team={"lead": "max"})

    @pytest.mark.parametrize(
        ("text", "written", "meant", "typed"),
        [
            ("NEXT: sarah\nhi", "NEXT: sarah", "[NEXT: sarah]", "--to sarah 'NEXT: sarah\nhi'"),
            ("NEXT: sarah it's\n\nx && y", "NEXT: sarah", "[NEXT: sarah]",
             "--to sarah 'NEXT: sarah it'\"'\"'s\n\nx && y'"),
            ("NEXT: sarah \x1b", "NEXT: sarah", "[NEXT: sarah]", None),
            ("[NEXT: sarah hi", "[NEXT: sarah hi", "[NEXT: sarah]", "--to sarah '[NEXT: sarah hi'"),
            ("[NEXT sarah] hi", "[NEXT sarah", "[NEXT: sarah]", "--to sarah '[NEXT sarah] hi'"),
            ("NEXT: sarha", "NEXT: sarha", "[NEXT: sarah]", "--to sarah 'NEXT: sarha'"),
            ("[NE\u200bXT: sarah] hi", "[NE\u200bXT: sarah]", "[NEXT: sarah]", None),
            ("[NEXT: sarha", "[NEXT: sarha", "[NEXT: sarah]", "--to sarah '[NEXT: sarha'"),
            ("[NEXT: sarha, max", "[NEXT: sarha, max", "[NEXT: sarah, max]", "--to 'sarah, max' '[NEXT: sarha, max'"),
            ("[NEXT sarha] hi", "[NEXT sarha", "[NEXT: sarah]", "--to sarah '[NEXT sarha] hi'"),
            ("\uff3bNEXT\uff1asarha\uff3d hi", "\uff3bNEXT\uff1asarha\uff3d", "[NEXT: sarah]",
             "--to sarah '\uff3bNEXT\uff1asarha\uff3d hi'"),
            ("\uff3bNEXT\uff1asarah\uff3d hi", "\uff3bNEXT\uff1asarah\uff3d", "[NEXT: sarah]",
             "--to sarah '\uff3bNEXT\uff1asarah\uff3d hi'"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("dry", [[], ["--dry-run"]])
    def test_it_is_refused_with_the_command(
        self, text: str, written: str, meant: str, typed: str | None, dry: list[str]
    ) -> None:
        ran = run_here("send", text, *dry)
        told = f"{written!r} is not a marker and does nothing: did you mean {meant}? (--anyway sends it as it is)"
        typed = typed and " ".join([typed, *dry])
        assert (ran.code, ran.err) == (4, f"teamchat: {told}\n" + (f"  try: teamchat send {typed}\n" if typed else ""))
        assert run_here("sessions", "--json").out == ""

    def test_the_command_that_is_told_calls_who_was_meant(self) -> None:
        hint = run_here("send", "NEXT: sarah, max look", "--quiet").err.splitlines()[1].removeprefix("  try: teamchat ")
        assert run_here(*shlex.split(hint)).out == "Me.\n"
        assert [name for name, _ in said()] == ["kailai", "sarah", "max"]

    def test_where_nobody_is_close_the_command_shows_who_there_is(self) -> None:
        assert run_here("send", "--new", "[NEXT: bob hi") == Result(
            4,
            "",
            "teamchat: '[NEXT: bob hi' is not a marker and does nothing: did you mean [NEXT: ...]?"
            " (--anyway sends it as it is)\n  try: teamchat team\n",
        )

    def test_a_misspelt_name_is_looked_for_in_what_was_typed_alone(self) -> None:
        assert run_here("send", "--quiet", "Look", stdin="@sarha\nNEXT: sarha").out == "Me.\n"

    def test_anyway_sends_a_misspelt_name_too(self) -> None:
        told = notes("'@sarha' is text: nobody is called 'sarha'")
        assert run_here("send", "--quiet", "--anyway", "@sarha hi") == Result(0, "Me.\n", told)

    def test_anyway_sends_it_as_it_is_with_a_note(self) -> None:
        ran = run_here("send", "--anyway", "--quiet", "@sarah hi")
        assert (ran.code, ran.out) == (0, "Me.\n")
        assert ran.err == notes("'@sarah' is not a marker and does nothing: did you mean [NEXT: sarah]?")

    @pytest.mark.parametrize(
        "args",
        [["[NEXT: max] @sarah hi"], ["--to", "max", "NEXT: sarah"], ["`NEXT: sarah` hi"], ["> @sarah\n\nhi"],
         ["```\n[NEXT: sarah\n```\nhi"], ["@max hi"], ["ask @sarah"], ["[TODO: x\nhi"],
         ["@example.org bounces"], ["bob@sarha.org bounces"], ["Hi\n@mxa"], ["`@sarha` hi"],
         ["@max, sarha is away"], ["[NEXT: max] @sarha hi"], ["NEXT: we deploy"]],
    )  # fmt: skip
    def test_it_is_sent_where_it_calls_somebody_who_is_called_or_is_prose(self, args: list[str]) -> None:
        assert run_here("send", "--quiet", *args).out == "Me.\n"

    @pytest.mark.parametrize("words", [["-"], [], ["Look"]])
    def test_piped_text_never_counts(self, words: list[str]) -> None:
        assert run_here("send", "--quiet", *words, stdin="@sarah\nNEXT: sarah\n[NEXT: sarah").out == "Me.\n"

    def test_it_is_held_against_who_would_be_called_in_this_conversation(self, world: Path) -> None:
        crew(world, {"max": [], "sarah": ["Yes?\n[NEXT: kailai]", "Fine."]}, team={"lead": "max"})
        assert run_here("send", "--to", "sarah", "Hi").code == 9
        assert run_here("send", "NEXT: max, what?").code == 4
        assert run_here("send", "--quiet", "NEXT: sarah, that").out == "Fine.\n"


class TestCallingOneself:
    @pytest.fixture(autouse=True)
    def team(self, world: Path) -> None:
        crew(world, {"max": ["Me."]}, humans=("kailai", "mia"))

    @pytest.mark.parametrize(
        "args",
        [["--as", "kailai", "[NEXT: kailai] Hi"], ["--as", "mia", "--to", "mia", "Hi"], ["--as", "mia", "[NEXT: mia]"]],
    )
    def test_alone_is_refused_and_pauses_nothing(self, args: list[str]) -> None:
        assert run_here("send", *args) == Result(2, "", "teamchat: you cannot call yourself; nobody was called\n")
        assert run_here("sessions", "--json").out == ""

    def test_the_others_that_are_called_speak(self) -> None:
        ran = run_here("send", "--as", "kailai", "--quiet", "[NEXT: kailai, max] Hi")
        assert ran == Result(0, "Me.\n", notes("you cannot call yourself; that call was ignored"))


def test_what_no_program_reports_is_told_once_a_session_and_in_every_receipt(world: Path) -> None:
    crew(world, {"max": ["One. [NEXT: sarah]", "Two."], "sarah": ["Me."]})
    told = "· not reported by max, sarah: tokens, denied actions\n"
    for ran, times in ((run_here("send", "[NEXT: max] Hi"), 1), (run_here("send", "[NEXT: max] Hi"), 0)):
        assert (ran.code, ran.err.count(told), ran.err.count("unknown")) == (0, times, 0)
    assert ["denied unknown" in run_here("show", number).out for number in "123"] == [True, True, True]
    crew(world, {"max": ["One.", "Two.", "Three."]})
    assert run_here("send", "--new", "[NEXT: max] Hi").err.endswith("· not reported by max: tokens, denied actions\n")
