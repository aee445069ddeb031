"""A program that prints its prompt: the markers in there are text, which nothing cuts out of what is shown."""

from __future__ import annotations

import json

import pytest

from teamchat.cli.output.terminal.voice import without_calls
from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from tests.cli.helpers import FILE, objects
from tests.program import run_here

pytestmark = pytest.mark.usefixtures("world")
EXAMPLE = "a line like [NEXT: bob]. Several names"


def scripts(**commands: str) -> None:
    """A team of kai and of shell scripts, whose standard input is the prompt."""
    parts = ['[[members]]\nname = "kai"\ntype = "human"']
    for name, command in commands.items():
        parts.append(f'[[members]]\nname = "{name}"\nagent = "{name}-agent"')
        parts.append(f'[agents.{name}-agent]\ncommand = ["/bin/sh", "-c", {json.dumps(command)}]')
    FILE.write_text("\n".join(parts))
    trust_store().grant(load(FILE))


@pytest.mark.parametrize("before", ["", "echo Hello; ", "echo 'PASS [NEXT: kai]'; echo; "])
def test_a_repeated_marker_stays_in_the_reply(before: str) -> None:
    scripts(ada=f"{before}cat", bob="cat > /dev/null; echo Hi")
    ran = run_here("send", "--quiet", "--to", "ada", "2+2?")
    assert EXAMPLE in ran.out
    assert "[NEXT: kai]" not in ran.out


def test_the_result_of_a_process_keeps_them_too() -> None:
    scripts(ada="cat > /dev/null; echo One", bob="cat; echo '[DROP: ALL]'")
    ran = run_here("run", "sequential", "--quiet", "--members", "ada,bob", "2+2?")
    assert "Markers such as [NEXT: ...] in your reply" in ran.out
    assert "[DROP: ALL]" not in ran.out


def test_a_verdict_before_them_is_not_the_last_word() -> None:
    scripts(ada="cat", bob="true")
    ran = run_here("send", "--json", "--verdict", "PASS,FAIL", "--to", "ada", "Say then\nPASS `[NEXT: bob]`")
    assert objects(ran)[-1]["verdict"] is None


@pytest.mark.parametrize("before", ["", "Hello\n\n", "> To hand over:\n\n- "])
def test_a_terminal_keeps_the_example_of_the_prompt(before: str) -> None:
    text = f"{before}To hand over, end your reply with {EXAMPLE} speak.\n\nHi [NEXT: kai]"
    assert without_calls(text, "ai") == text.removesuffix(" [NEXT: kai]")
