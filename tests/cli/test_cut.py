"""What a prompt has no room for: refused, allowed by --cut, or told; never lost in silence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from teamchat.cli.startup.piped import fenced
from tests.cli.helpers import notes, objects, refused, rows, steady, turn
from tests.program import Result, run_here
from tests.scripted_team import crew

LONG = "".join(f"line {number}\n" for number in range(30_000)).strip()
BEGINS = "session s1 begins"


def test_a_message_that_a_prompt_has_no_room_for_is_refused_and_nothing_begins(world: Path) -> None:
    crew(world, {"max": ["Done."]}, team={"max_bytes": 3000})
    ran = run_here("send", "--to", "max", "x" * 4000)
    assert (ran.code, rows()["sessions"]) == (12, [])
    assert re.fullmatch(
        r"the message has 4,000 bytes, and max's prompt with it 4,\d{3}: over max_bytes \(3,000\)\."
        r" Raise it in the team file, or leave the middle of the message out \(--cut\)",
        refused(ran),
    )
    assert run_here("send", "--to", "max", "Hi", "--quiet").out == "Done.\n"
    before = rows()
    assert run_here("send", "--to", "max", "x" * 4000).code == 12
    assert rows() == before


def test_a_short_command_is_told_with_cut(world: Path) -> None:
    crew(world, {"max": ["Done."]}, team={"max_bytes": 1100})
    ran = run_here("send", "--to", "max", "x" * 900)
    assert ran.err.endswith(f"  try: teamchat send --cut --to max {'x' * 900}\n")


@pytest.mark.parametrize("how", [[], ["--quiet"], ["--json"]])
def test_cut_sends_it_without_its_middle_and_says_what_went(world: Path, how: list[str]) -> None:
    made = crew(world, {"max": ["Done."]}, team={"max_bytes": 100_000})
    ran = run_here("send", "--cut", "--to", "max", *how, stdin=LONG)
    assert ran.code == 0
    (prompt,) = made.prompts("max")
    assert len(prompt.encode()) <= 100_000
    told = re.search(
        r"max gets kailai's message msg-1 without ([\d,]+) bytes of its middle \(max_bytes\)", ran.err + ran.out
    )
    assert told
    marker = re.search("…\\d+ tokens truncated…", prompt)
    assert marker
    kept = len(prompt[prompt.index("line 0\n") :].encode()) - len(marker[0].encode())
    gone = len(fenced(LONG).removeprefix("```\n")) - kept
    assert gone == int(told[1].replace(",", ""))
    assert f"{gone:,} bytes of text (the budget)" in run_here("show").out
    assert LONG in run_here("log", "--json").out.replace("\\n", "\n")


def test_the_message_of_an_agent_and_the_request_that_are_cut_are_told(world: Path) -> None:
    said = {"max": ["a" * 5000 + " [NEXT: sarah]"], "sarah": ["Fine."]}
    crew(world, said, team={"max_bytes": 5000, "context_window": 0})
    ran = run_here("send", "--quiet", "--to", "max", "r" * 3500)
    assert (ran.code, ran.out) == (0, "Fine.\n")
    assert re.fullmatch(
        r"· sarah gets max's message msg-2 without [\d,]+ bytes of its middle \(max_bytes\)\n"
        r"· sarah gets nothing of kailai's message msg-1: its 3,500 bytes are left out \(max_bytes\)\n",
        ran.err,
    )


def test_a_short_reply_stays_whole_beside_a_long_request(world: Path) -> None:
    made = crew(world, {"max": ["All is well. [NEXT: sarah]"], "sarah": ["Fine."]}, team={"max_bytes": 100_000})
    ran = run_here("send", "--cut", "--quiet", "--to", "max", "Find bugs", stdin=LONG)
    assert (ran.code, ran.out) == (0, "Fine.\n")
    (prompt,) = made.prompts("sarah")
    assert "All is well." in prompt[prompt.rindex("line 29999") :]
    assert prompt.count("tokens truncated…") == 1
    assert re.fullmatch(
        r"· 30,000 lines of standard input appended\n"
        r"· max gets kailai's message msg-1 without [\d,]+ bytes of its middle \(max_bytes\)\n"
        r"· sarah gets kailai's message msg-1 without [\d,]+ bytes of its middle \(max_bytes\)\n",
        ran.err,
    )


def test_a_later_members_prompt_that_cuts_the_request_says_so(world: Path) -> None:
    wide = {"sarah": {"system_instruction": "y" * 3000}}
    said = {"max": ["Look. [NEXT: sarah]"], "sarah": ["Fine."]}
    made = crew(world, said, team={"max_bytes": 5500, "context_window": 0}, members=wide)
    ran = run_here("send", "--quiet", "--to", "max", "r" * 3500)
    told = r"· sarah gets kailai's message msg-1 without [\d,]+ bytes of its middle \(max_bytes\)\n"
    assert (ran.code, bool(re.fullmatch(told, ran.err))) == (0, True), ran.err
    assert "tokens truncated…" in made.prompts("sarah")[0]


def test_what_is_left_out_of_history_and_layers_is_a_line_and_a_field(world: Path) -> None:
    crew(world, {"max": ["One.", "Two.", "Three."]}, team={"max_prompt_tokens": 600, "max_message_tokens": 300})
    for text in ("a" * 900, "b" * 1040):
        ran = run_here("send", "--to", "max", text)
        assert "left out" not in ran.err
    before, after = turn("max", 3)
    ran = run_here("send", "--to", "max", "c")
    assert steady(ran) == Result(
        0,
        "max:\nThree.\n\n",
        notes(
            "session s1 continues (--new starts another)",
            before,
            "max sees 3 of 4 messages, 908 bytes left out (max_prompt_tokens)",
            after,
        ),
    )


def test_a_long_message_of_the_history_is_told_to_lose_its_middle(world: Path) -> None:
    crew(world, {"max": ["One.", "Two.", "Three."]}, team={"max_message_tokens": 100})
    assert run_here("send", "--to", "max", "x" * 5000).code == 0
    ran = run_here("send", "--to", "max", "Hi", "--json")
    (done,) = [line for line in objects(ran) if line["type"] == "turn_finished"]
    trimmed = done["trimmed"]
    assert isinstance(trimmed, dict)
    assert (trimmed["long_messages"], trimmed["history_messages"], trimmed["limit"]) == (1, 0, None)
    assert 4600 <= trimmed["bytes"] < 5000
    line = "· max sees 1 long message without the middle, 4,6\\d\\d bytes left out \\(max_message_tokens\\)\n"
    assert re.search(line, run_here("send", "--to", "max", "Hi").err)


def test_a_prompt_that_tells_all_has_no_field(world: Path) -> None:
    crew(world, {"max": ["One."]})
    (done,) = [line for line in objects(run_here("send", "Hi", "--json")) if line["type"] == "turn_finished"]
    assert done["trimmed"] is None
