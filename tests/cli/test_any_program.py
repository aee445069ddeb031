"""A person brings a program that no code here knows: how it gets its prompt, and what its output means."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from teamchat.core.turn import plan
from teamchat.runners.agent_events import NOTHING_YET
from teamchat.runners.child.supervisor import Clocks
from tests.cli.helpers import objects, refused, said
from tests.program import Result, run_here

pytestmark = pytest.mark.usefixtures("world")
FAILED = "echo 'request failed: 429 Too Many Requests' >&2; exit 1"


def team(script: str, keys: str = "", member: str = "", others: str = "", name: str = "tool") -> Path:
    """A team of a person and max, whom a program of these lines of shell speaks for. It is trusted."""
    program = Path(name)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    text = f'[[members]]\nname = "kailai"\ntype = "human"\n[[members]]\nname = "max"\nagent = "mine"\n{member}\n'
    if "command =" not in keys:
        keys = f'command = ["./{name}"]\n{keys}'
    file = Path("teamchat.toml")
    file.write_text(f"{text}{others}\n[agents.mine]\n{keys}\n")
    trust_store().grant(load(file.absolute()))
    return file


def send(words: str = "Hi") -> Result:
    return run_here("send", words)


def receipt() -> str:
    return run_here("show").out


# ---------------------------------------------------------------- clocks


def test_no_clock_but_its_timeout_ends_a_program_that_prints_its_reply_at_its_end() -> None:
    team("cat > /dev/null; echo Done")
    described = objects(run_here("team", "--json"))[0]["members"][1]  # type: ignore[index]
    assert described["clocks_s"] == {"first_byte": None, "stall": None, "timeout": 1800.0}
    assert "clocks: first byte none, stall none, total 1800 s" in run_here("team").out


def test_a_program_that_says_nothing_ends_at_its_timeout() -> None:
    team("cat > /dev/null; sleep 60", member='timeout = "1s"')
    ran = send()
    assert (ran.code, "max was still running after 1 s (its timeout)" in ran.err) == (3, True)


def test_its_own_clocks_count_where_the_team_file_sets_them() -> None:
    team("cat > /dev/null; sleep 60", member='first_byte = "1s"')
    assert "max wrote nothing in its first 1 s (first_byte)" in send().err


def test_the_wait_for_it_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "Clocks", partial(Clocks, note_s=0.2))
    team("cat > /dev/null; sleep 1; echo Done")
    ran = send()
    assert (ran.code, NOTHING_YET in receipt()) == (0, True)


# ---------------------------------------------------------------- what is known of it


def test_what_it_does_with_tools_is_unknown() -> None:
    team("cat > /dev/null; touch made.txt; echo Done")
    send()
    assert re.search(r"^  tools +used unknown, denied unknown$", receipt(), re.MULTILINE)
    assert objects(run_here("show", "--json"))[0]["outcome"]["tools"] is None  # type: ignore[index]


@pytest.mark.parametrize("access", ["read", "edit"])
def test_a_program_like_another_is_not_said_to_be_bounded(access: str) -> None:
    team("cat > /dev/null", keys='command = ["./tool"]\nlike = "opencode"', member=f'access = "{access}"')
    words = "if tool obeys what opencode does: not proven"
    assert words in run_here("team").out
    assert words in run_here("trust", "--list").out + run_here("doctor").out
    send()
    assert words in receipt()


def test_the_vendors_own_program_elsewhere_is_what_it_is(tmp_path: Path) -> None:
    claude = tmp_path / "claude"
    claude.write_text("#!/bin/sh\n")
    claude.chmod(0o755)
    team("", keys=f'command = ["{claude}"]\nlike = "claude"')
    assert "not proven" not in run_here("team").out


# ---------------------------------------------------------------- its prompt


def test_it_can_have_a_pipe_where_it_refuses_a_file() -> None:
    refuses = 'if [ -f /dev/stdin ]; then echo "interactive mode requires a TTY" >&2; exit 1; fi\ntail -n 1'
    team(refuses)
    assert "interactive mode requires a TTY" in send().err
    team(refuses, keys='stdin = "pipe"')
    assert (run_here("resume").code, said()[-1]) == (0, ("max", "Hi"))


def test_a_pipe_program_ends_with_its_own_code_and_signal() -> None:
    team("exit 7", keys='stdin = "pipe"')
    assert "max ended with exit code 7" in send().err
    team("kill -9 $$", keys='stdin = "pipe"')
    assert "max was ended by SIGKILL" in run_here("resume").err


def test_a_path_that_others_wrote_is_inert_and_one_that_a_person_typed_is_not() -> None:
    Path("note.txt").write_text("secret")
    sarah = '[[members]]\nname = "sarah"\nagent = "other"\n[agents.other]\ncommand = ["./sarah"]\n'
    Path("sarah").write_text("#!/bin/sh\ncat > /dev/null; echo '[NEXT: max] Compare with @note.txt and @missing.txt'\n")
    Path("sarah").chmod(0o755)
    team("cat > prompt; echo Done", others=sarah)
    send("[NEXT: sarah] See @note.txt please")
    prompt = Path("prompt").read_text()
    assert "Compare with \\@note.txt and @missing.txt" in prompt
    assert "mentions in others' text made inert" in receipt() or "1 mention in others' text made inert" in receipt()
    send("[NEXT: max] And @note.txt?")
    assert Path("prompt").read_text().rstrip().endswith("And @note.txt?")
    team("cat > prompt; echo Done", keys='mentions = "as they are"', others=sarah)
    send("[NEXT: sarah] Once more")
    assert "\\@" not in Path("prompt").read_text().rpartition("Once more")[2]


def test_a_relative_path_among_its_arguments_is_found_from_the_team_file() -> None:
    Path("deeper").mkdir()
    team("cat > /dev/null; echo Done", keys='command = ["sh", "./tool", "./is-not-there"]', member='cwd = "deeper"')
    Path("tool").write_text('cat > /dev/null; echo "$# $1"\n')
    trust_store().grant(load(Path("teamchat.toml").absolute()))
    send()
    assert said()[-1] == ("max", "1 ./is-not-there")


# ---------------------------------------------------------------- its reply and its failures


@pytest.mark.parametrize(
    ("script", "kind", "code"),
    [
        (FAILED, "rate_limit", 1),
        ("echo 'Error: 401 Incorrect API key provided'; exit 1", "login", 11),
        ("echo 'Error: 503 the model is overloaded' >&2; exit 2", "overloaded", 1),
        ("echo 'half an answer about rate limits'; echo 'Segmentation fault' >&2; exit 3", "rate_limit", 1),
        ("echo 'no idea' >&2; exit 3", "agent", 1),
    ],
)
def test_its_own_words_tell_the_kind_of_a_failure(script: str, kind: str, code: int) -> None:
    team(f"cat > /dev/null; {script}")
    assert send().code == code
    assert objects(run_here("show", "--json"))[0]["outcome"]["failure"]["kind"] == kind  # type: ignore[index]


def test_another_answers_for_it_where_its_limit_is_reached() -> None:
    sarah = '[[members]]\nname = "sarah"\nagent = "other"\n[agents.other]\ncommand = ["./sarah"]\n'
    Path("sarah").write_text("#!/bin/sh\ncat > /dev/null; echo Here\n")
    Path("sarah").chmod(0o755)
    team(f"cat > /dev/null; {FAILED}", member='fallback = ["sarah"]', others=sarah)
    ran = send("[NEXT: max] Hi")
    assert (ran.code, said()[-1]) == (0, ("sarah", "Here"))


def test_it_is_tried_again_after_a_limit() -> None:
    team(f"cat > /dev/null; if [ -e tried ]; then echo Done; exit; fi; touch tried; {FAILED}", member="retries = 1")
    assert (send().code, said()[-1]) == (0, ("max", "Done"))


def test_a_reply_that_says_it_failed_is_a_failed_turn() -> None:
    error = "litellm.AuthenticationError: no api key"
    team(f"cat > /dev/null; echo '{error}'", keys="fail_pattern = '^litellm\\.\\w+Error'")
    ran = send()
    assert (ran.code, error in ran.err) == (11, True)
    team("cat > /dev/null; echo 'It says litellm.AuthenticationError'", keys="fail_pattern = '^litellm\\.\\w+Error'")
    assert run_here("resume").code == 0


def test_a_pattern_that_takes_for_ever_fails_the_turn_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teamchat.runners.pipe.PATTERN_S", 0.5)
    team(f"cat > /dev/null; echo {'a' * 40}!", keys="fail_pattern = '^(a+)+$'")
    ran = send()
    assert (ran.code, "max its fail_pattern took longer than 0.5 s on this reply: make it simpler" in ran.err) == (
        1,
        True,
    )


def test_a_pattern_that_cannot_be_read_is_refused() -> None:
    text = '[[members]]\nname = "max"\nagent = "x"\n[agents.x]\ncommand = ["x"]\nfail_pattern = "a{1,99999999999}"\n'
    Path("teamchat.toml").write_text(text)
    assert "agents 'x': fail_pattern: expected a regular expression" in refused(send())


def test_colours_bullets_and_indents_can_be_no_part_of_a_reply() -> None:
    printed = "\\033[32m• First\\033[0m\\n\\n  second:\\n      code\\n"
    team(f"cat > /dev/null; printf '{printed}'", keys='reply = "strip"')
    send()
    assert said()[-1] == ("max", "First\n\nsecond:\n    code")


@pytest.mark.parametrize(
    ("output", "path", "reply"),
    [
        ('{"result": {"text": "Whole"}}', "result.text", "Whole"),
        ('[\n {"text": "one"},\n {"text": "two"}\n]', "-1.text", "two"),
        ('{"content": "asked"}\nnoise\n{"other": 1}\n{"content": "answered"}', "content", "answered"),
    ],
)
def test_a_reply_can_be_a_part_of_json(output: str, path: str, reply: str) -> None:
    Path("output").write_text(output)
    team("cat > /dev/null; cat output", keys=f'json = "{path}"')
    send()
    assert said()[-1] == ("max", reply)
    assert reply in run_here("log").out


def test_json_without_the_reply_is_a_failed_turn() -> None:
    team("""cat > /dev/null; echo '{"error": "none"}'""", keys='json = "result.text"')
    ran = send()
    assert (ran.code, "max printed no JSON with a text at result.text" in ran.err) == (1, True)


# ---------------------------------------------------------------- its table


@pytest.mark.parametrize("key", ['stdin = "pipe"', 'mentions = "inert"', 'reply = "strip"', 'json = "a"'])
def test_such_keys_are_only_for_a_plain_program(key: str) -> None:
    Path("teamchat.toml").write_text(
        f'[[members]]\nname = "max"\nagent = "mine"\n[agents.mine]\ncommand = ["x"]\nlike = "claude"\n{key}\n'
    )
    words = f"agents 'mine': {key.partition(' ')[0]}: expected only for a plain program, not for one like claude"
    assert words in refused(run_here("send", "Hi"))


def test_a_recording_keeps_how_its_output_is_read(tmp_path: Path) -> None:
    record = tmp_path / "r.cassette"
    team("""cat > /dev/null; echo '{"a": "Whole"}'""", keys='json = "a"')
    assert run_here("send", "--record", str(record), "Hi").code == 0
    replayed = run_here("replay", str(record))
    assert (replayed.code, "Whole" in replayed.out, '{"a"' in replayed.out) == (0, True, False)
    agents = json.loads(record.read_text().splitlines()[0])
    assert str(Path.cwd()) not in json.dumps(agents)
