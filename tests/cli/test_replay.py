from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.helpers import refused
from tests.program import cli, run_here
from tests.scripted_team import crew

KEY = "sk-ant-api03-" + "k3Y9" * 10
PRIVATE_KEY = "\n".join(["-----BEGIN PRIVATE KEY-----", "MIIE" * 16, "aB+/" * 16, "-----END PRIVATE KEY-----"])
REPLIES = {"max": ["Plan.\n[NEXT: sarah]", "Thanks."], "sarah": ["Done.\n[NEXT: kailai]"]}


@pytest.fixture
def cassette(world: Path) -> Path:
    """A recorded conversation of two inputs."""
    crew(world, REPLIES, team={"lead": "max"})
    path = Path("talk.cassette").absolute()
    assert run_here("send", "--record", path, "[NEXT:max] Go").code == 9
    assert run_here("send", "--record", path, "--to", "max", "Fine").code == 0
    return path


def test_a_replay_prints_what_was_said_twice_the_same(cassette: Path) -> None:
    one, two = (run_here("replay", "--verify", "--speed", speed, cassette) for speed in ("0", "50"))
    assert one.code == 0, one.err
    assert (one.out, one.err) == (two.out, two.err)
    assert one.out == (
        "$ teamchat send '[NEXT:max] Go'\n\nmax:\nPlan.\n[NEXT: sarah]\n\nsarah:\nDone.\n[NEXT: kailai]\n\n"
        "$ teamchat send --to max Fine\n\nmax:\nThanks.\n\n"
    )


@pytest.mark.parametrize("kind", ["plain", "claude", "codex", "gemini"])
def test_a_fenced_conversation_with_secrets_replays_and_has_none_of_them_in_its_cassette(
    world: Path, kind: str
) -> None:
    replies = {
        "max": [f"Found:\n{KEY}\n{PRIVATE_KEY}\n[NEXT: sarah]"],
        "sarah": ["Hm.\n[NEXT: carol]"],
        "carol": ["Oh."],
    }
    made = crew(world, replies, like=dict.fromkeys(replies, kind), team={"fence": True})
    ran = run_here("send", "--record", "a.cassette", f"[NEXT:max] Mine is {KEY}")
    assert ran.code == 0, ran.err
    assert KEY in made.prompts("max")[0]
    assert "<said-" in made.prompts("max")[0]
    assert KEY not in made.prompts("sarah")[0] + made.prompts("carol")[0]
    recorded = Path("a.cassette").read_text()
    assert KEY not in recorded
    assert "MIIE" not in recorded
    replayed = run_here("replay", "--speed", "0", "--verify", "a.cassette")
    assert (replayed.code, "carol:\nOh." in replayed.out) == (0, True), replayed.err


def test_a_recording_goes_on_only_with_the_conversation_whose_codes_it_has(world: Path) -> None:
    crew(world, {"max": ["One.", "Two."]}, team={"fence": True})
    assert run_here("send", "--record", "a.cassette", "Hi").code == 0
    assert run_here("send", "--new", "Hi").code == 0  # as long as the other one
    ran = run_here("send", "--record", "a.cassette", "Go on")
    assert (ran.code, "records another team or conversation" in ran.err) == (2, True)


def test_a_replay_runs_nothing_and_leaves_nothing(cassette: Path, world: Path) -> None:
    scripts = sorted((world / "scripts").iterdir())
    messages = run_here("log", "--json").out
    for path in world.rglob("scripted*"):
        path.unlink()
    assert cli("replay", "--speed", "0", cassette, cwd=world).code == 0
    assert sorted((world / "scripts").iterdir()) == scripts
    assert run_here("log", "--json").out == messages
    assert list((world / "tmp").glob("teamchat-*")) == []


def test_one_changed_word_of_the_instructions_is_exit_10_with_the_difference(cassette: Path, world: Path) -> None:
    crew(world, REPLIES, team={"lead": "max"}, members={"sarah": {"system_instruction": "You are picky"}})
    ran = run_here("replay", "--speed", "0", "--team", "./teamchat.toml", cassette)
    assert ran.code == 10
    assert ran.out.endswith("max:\nPlan.\n[NEXT: sarah]\n\n")  # max's turn is as recorded
    assert "no recording of this turn of sarah; the nearest one differs:" in ran.err
    assert "+You are picky" in ran.err
    assert "Traceback" not in ran.err


def test_what_was_told_of_files_and_lessons_is_recorded_with_its_turn(world: Path) -> None:
    Path("a.md").write_text(f"Mine is {KEY}.\n")
    made = crew(world, {"max": ["Hi [NEXT: sarah]", "Bye"], "sarah": ["Me"]}, members={"max": {"knowledge": ["a.md"]}})
    run_here("learn", "Run make lint")
    assert run_here("send", "--record", "a.cassette", "[NEXT:max] Go").code == 0
    Path("a.md").write_text("Changed.\n")
    assert run_here("send", "--record", "a.cassette", "[NEXT:max] Go on").code == 0
    assert ["Mine is" in prompt for prompt in made.prompts("max")] == [True, False]
    assert KEY not in Path("a.cassette").read_text()
    Path("a.md").unlink()
    run_here("learn", "--delete", "1")
    assert run_here("replay", "--verify", "a.cassette").code == 0


def test_a_changed_recording_does_not_verify(cassette: Path) -> None:
    changed = cassette.read_text().replace('"text": "Thanks."', '"text": "No thanks."')
    cassette.write_text(changed)
    assert run_here("replay", "--speed", "0", cassette).code == 0
    ran = run_here("replay", "--speed", "0", "--verify", cassette)
    assert ran.code == 1
    assert 'input 2 is not as recorded: message 2 text: "Thanks." instead of "No thanks."' in ran.err


def test_json_of_a_replay(cassette: Path) -> None:
    ran = run_here("replay", "--speed", "0", "--json", cassette)
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["text"] for line in lines if line["type"] == "result"] == ["Done.\n[NEXT: kailai]", "Thanks."]


def test_a_recording_that_can_not_go_on_is_refused_before_anything_is_said(cassette: Path) -> None:
    run_here("send", "--to", "max", "unrecorded")
    before = run_here("log", "--json").out
    ran = run_here("send", "--record", cassette, "--to", "max", "More")
    assert (ran.code, run_here("log", "--json").out) == (2, before)
    other = shlex.quote(str(cassette.with_stem("talk-2")))
    assert ran.err.endswith(f"\n  try: teamchat send --new --record {other} --to max More\n")
    assert "does not match what this conversation has now" in ran.err


def test_a_file_that_is_not_there_is_one_line() -> None:
    ran = run_here("replay", "nothing.cassette")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "teamchat: the cassette nothing.cassette cannot be read: No such file or directory\n"


@pytest.mark.parametrize("command", [("send", "Hi"), ("resume",)])
@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("session.cassette", "session.cassette is not a cassette of this version: line 1: "),
        ("/proc/session.cassette", "the cassette /proc/session.cassette cannot be written: "),
    ],
)
def test_what_cannot_be_recorded_into_is_told_before_anything_begins(
    world: Path, command: tuple[str, ...], file: str, said: str
) -> None:
    made = crew(world, {"max": ["Hello."]})
    Path("session.cassette").write_text("no cassette\n")
    ran = run_here(*command, "--record", file)
    assert ran.code == 2
    assert refused(ran).startswith(said)
    assert run_here("sessions", "--json").out == ""
    assert made.prompts("max") == []
    assert Path("session.cassette").read_text() == "no cassette\n"


def test_a_link_to_a_file_that_is_not_there_stays_when_a_message_is_refused(world: Path) -> None:
    crew(world, {"max": ["Hello."]})
    Path("link.cassette").symlink_to("new.cassette")
    assert run_here("send", "--record", "link.cassette", "[NEXT:nobody] Hi").code == 4
    assert Path("link.cassette").is_symlink()
    assert not Path("new.cassette").exists()
    assert run_here("send", "--record", "link.cassette", "Hi").code == 0
    assert Path("new.cassette").exists()
