"""Members that are programs on a terminal, from `send` to the receipt, the recording and the crash."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from tests.cli.helpers import FILE, objects, queue, refused, said, steady
from tests.fakes import repl
from tests.program import ROOT, cli, ended, fake, run_here, start
from tests.runners.processes import Pids, clocks_wait_for, eventually

REPL = Path(repl.__file__)
TEAM = """
[[members]]
name = "kailai"
type = "human"

[[members]]
name = "max"
agent = "desk"
{member}

[agents.desk]
command = {command}
transport = "pty"
prompt_pattern = '>>> '
{agent}
"""


def wrote(text: bytes) -> bool:
    """Whether a turn that runs has written this."""
    with contextlib.suppress(FileNotFoundError):  # it has just ended
        return any(text in file.read_bytes() for file in Path(os.environ["TEAMCHAT_HOME"]).rglob("stdout"))
    return False


def on_terminal(way: str, member: str = "", agent: str = "", *, trusted: bool = True) -> None:
    command = json.dumps([*fake(REPL), way])
    FILE.write_text(TEAM.format(member=member, agent=agent, command=command))
    if trusted:
        trust_store().grant(load(FILE))


def test_a_program_on_a_terminal_answers_and_its_answer_is_routed() -> None:
    on_terminal("upper", 'system_instruction = "You are Max."')
    ran = run_here("send", "Good day")
    assert ran.code == 9, ran.err  # the prompt, which it says again, names kailai as one who may be asked
    ((_, question), (name, answer)) = said()
    assert (question, name) == ("Good day", "max")
    assert str(answer).startswith("YOU ARE MAX.  ")
    assert str(answer).endswith("GOOD DAY")
    assert "typed as one line" in ran.err
    assert "TERM=dumb" in run_here("show").out
    assert "GOOD" not in run_here("show", "--prompt").out
    (receipt,) = objects(run_here("show", "--json"))
    assert receipt["setup"]["argv"] == [*fake(REPL), "upper"]  # type: ignore[index]


def test_its_text_streams_as_it_comes() -> None:
    on_terminal("slow")
    lines = objects(run_here("send", "--json", "--stream", "Hi"))
    deltas = [line["text"] for line in lines if line["type"] == "text_delta"]
    assert "".join(map(str, deltas)) == "one two three\n"
    assert len(deltas) > 1
    assert lines[-1]["text"] == "one two three"


@pytest.mark.parametrize(
    ("way", "member", "code", "reason", "partial"),
    [
        (
            "dies",
            "",
            1,
            "ended with exit code 3 before its prompt came: out of memory",
            "half an answer\nout of memory",
        ),
        ("blank", "", 1, "finished without an answer", ""),
        ("silent", 'stall = "0.3s"', 3, "was silent for 0.3 s (stall)", "half an answer\nand a half"),
        ("silent", 'timeout = "0.3s"', 3, "was still running after 0.3 s (its timeout)", "half an answer\nand a half"),
    ],
)
def test_it_fails_in_words_and_its_partial_text_is_kept(
    monkeypatch: pytest.MonkeyPatch, way: str, member: str, code: int, reason: str, partial: str
) -> None:
    clocks_wait_for(lambda: wrote(b"and a half"), monkeypatch)
    on_terminal(way, member)
    ran = run_here("send", "Hi")
    assert (ran.code, ran.out) == (code, "")
    assert f"failed: max {reason}; held: max\n" in ran.err
    (receipt,) = objects(run_here("show", "--json"))
    assert (receipt["status"], receipt["partial"]) == ("failed", partial)
    assert [name for name, _ in said()] == ["kailai"]
    assert queue() == [("max", "held")]


def test_a_prompt_that_never_comes_is_told_with_what_came_instead() -> None:
    last = "no line matched prompt_pattern '>>> '; the last one is 'no prompt here:'"
    for seconds in ("0.5", "4", "32"):  # until that is enough for it to show what it shows
        on_terminal("unread", f'first_byte = "{seconds}s"')
        ran = run_here("send", "--new", "Hi")
        told = f"failed: max showed no prompt in its first {seconds} s: {last}; held: max\n" in ran.err
        if told:
            break
    assert told, ran.err
    assert (ran.code, ran.out) == (3, "")
    (receipt,) = objects(run_here("show", "--json"))
    assert (receipt["status"], receipt["partial"]) == ("failed", "Welcome.\nno prompt here: ")


def test_its_transport_and_its_pattern_are_shown() -> None:
    on_terminal("upper", agent='exit = "/bye"')
    assert "  on a terminal: its prompt matches '>>> ', ended with '/bye'\n" in run_here("team").out
    (_, member) = json.loads(run_here("team", "--json").out)["members"]
    assert member["terminal"] == {"prompt": ">>> ", "submit": "\r", "exit": "/bye"}
    shown = run_here("send", "--dry-run", "Hi")
    assert shown.code == 0
    assert "typist" not in shown.out


def test_it_is_not_run_without_trust() -> None:
    on_terminal("upper", agent='exit = "/bye"', trusted=False)
    ran = cli("send", "Hi")
    assert ran.code == 5
    assert f"{fake(REPL)[-1]} upper on a terminal, and types '/bye' there" in ran.err


def test_a_program_that_is_not_there_is_named_before_anything_starts() -> None:
    FILE.write_text(TEAM.format(member="", agent="", command='["no-such-desk"]'))
    trust_store().grant(load(FILE))
    ran = run_here("send", "Hi")
    assert ran.code == 11
    why = "is not installed; install it, or change its command in the team file"
    assert f"failed: max's program 'no-such-desk' {why}; held: max" in ran.err


def test_a_recorded_conversation_plays_without_the_program(world: Path) -> None:
    on_terminal("repaint")
    assert run_here("send", "--record", "talk.cassette", "Hi").code == 0
    shutil.copy("talk.cassette", world)
    played = run_here("replay", str(world / "talk.cassette"), "--speed", "1000")
    assert played.code == 0, played.err
    assert "One\ntwo" in steady(played).out


def test_a_secret_in_its_answer_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "dummy-key-of-a-vendor-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    on_terminal("colours")
    assert key in run_here("send", "--record", "talk.cassette", f"The key is {key}").out
    assert key not in Path("talk.cassette").read_text()


def test_killed_teamchat_leaves_no_process_and_keeps_the_partial_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pids = Pids(tmp_path / "pids")
    monkeypatch.setenv("AGENT_PIDS", str(pids.file))
    on_terminal("silent")
    process = start("send", "Hi")
    pids.await_count(1)
    assert eventually(lambda: wrote(b"and a half"))
    process.send_signal(signal.SIGKILL)
    ended(process)
    assert eventually(lambda: pids.alive() == [])
    run_here("resume", "--skip")
    assert "  | half an answer\n  | and a half\n" in run_here("show", "1").out


def test_the_example_runs(world: Path) -> None:
    for name in ("teamchat.toml", "desk.py"):
        shutil.copy(ROOT / "examples" / "terminal" / name, world / "work")
    assert run_here("trust").code == 0
    ran = run_here("send", "[NEXT:desk] How are you today?")
    assert ran.code == 0, ran.err
    assert ran.out.endswith(", below. How are you today?\n\n")
    assert "hung up" not in ran.err


def test_a_recorded_terminal_without_its_pattern_is_no_cassette() -> None:
    on_terminal("upper")
    assert run_here("send", "--record", "talk.cassette", "Hi").code == 9
    text = Path("talk.cassette").read_text()
    whole = json.dumps({"prompt": ">>> ", "submit": "\r", "exit": None})
    assert whole in text
    Path("talk.cassette").write_text(text.replace(whole, "null"))
    ran = run_here("replay", "talk.cassette", "--speed", "0")
    assert ran.code == 2
    assert "the agent 'desk' has an incomplete terminal configuration" in refused(ran)
