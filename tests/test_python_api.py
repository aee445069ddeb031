"""What a Python program gets from `import teamchat`, and the example that runs a conversation with it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

import teamchat
from teamchat import errors
from tests.cli.helpers import actors, queue, said, select
from tests.program import ROOT, run_here
from tests.runners.processes import Pids

EXAMPLE = ROOT / "examples" / "python" / "conversation.py"
PAGE = ROOT / "docs" / "howto" / "python.md"


def python(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, check=False)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.usefixtures("world")
def test_the_example_runs_and_prints_what_the_page_shows() -> None:
    ran = python(str(EXAMPLE))
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert f"$ python conversation.py\n{ran.stdout}" in blocks("text")


def test_the_page_holds_as_it_stands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hello, ask, cell, tested, events = blocks("python")
    assert run_here("init", "--template", "offline").code == 0
    capsys.readouterr()
    for name, code in {"hello.py": hello, "ask.py": ask, "events.py": events}.items():
        Path(name).write_text(code)
        run_path(name)
        assert f"$ python {name}\n{capsys.readouterr().out}" in blocks("text")

    async def notebook() -> teamchat.Reply:
        names: dict[str, Any] = {}
        await eval(compile(cell, "cell", "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT), names)  # noqa: S307 (as a notebook does)
        reply: teamchat.Reply = names["reply"]
        return reply

    assert asyncio.run(notebook()).member == "checker"
    Path("test_checker.py").write_text(tested)
    run_path("test_checker.py")["test_the_checker_is_content"](monkeypatch, tmp_path)


def test_the_example_tells_an_error_in_one_line(world: Path) -> None:
    (world / "work" / "conversation.db").write_text("no store\n" * 1000)
    ran = python(str(EXAMPLE))
    assert (ran.stdout, ran.returncode) == ("", 1)
    assert re.fullmatch(r".* \(exit code 13\)\n", ran.stderr)


@pytest.mark.parametrize("name", teamchat.__all__)
def test_each_name_is_there_and_on_the_page(name: str) -> None:
    assert getattr(teamchat, name) is not None
    assert name in dir(teamchat)
    assert re.search(rf"`(await )?(.*\W)?{name}\b", PAGE.read_text(encoding="utf-8"))


def test_errors_are_those_that_a_coordinator_raises() -> None:
    assert issubclass(teamchat.errors.UsageError, teamchat.errors.TeamchatError)


def test_a_name_that_is_not_there_is_told() -> None:
    with pytest.raises(AttributeError, match=r"^module 'teamchat' has no attribute 'Nobody'$"):
        teamchat.Nobody  # type: ignore[attr-defined]  # noqa: B018


def test_importing_it_imports_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import teamchat; print(*sorted(set(sys.modules) - before))"
    assert python("-c", code).stdout == "__future__ teamchat\n"


def test_a_manager_of_its_own_needs_no_store() -> None:
    manager = teamchat.ContextManager(context_window_size=0)
    manager.set_team_task("Explain the haiku")
    assert teamchat.CODEX.assemble(manager.get_context_for_agent()).prompt == "[TEAM_TASK]\nExplain the haiku"


def test_a_program_has_a_conversation_in_the_store_of_the_command_line(world: Path) -> None:
    actors({"max": ["reply", "Hello\n[NEXT: eva]"], "eva": ["reply", "Shall I?\n[NEXT: kailai]"]})

    async def program() -> teamchat.Talk:
        async with teamchat.conversation("teamchat.toml") as talk:
            assert (talk.session, talk.messages) == (None, ())
            with pytest.raises(errors.UnknownName):
                await talk.send("Hi", to="nobody")
            assert talk.session is None
            reply, again = await asyncio.gather(talk.send("[NEXT: max] Hi"), talk.send("Yes", to="eva"))
            assert (str(reply), reply.member, reply.session) == ("Shall I?\n[NEXT: kailai]", "eva", "s1")
            assert (reply.outcome, reply.asked, reply.turns, again.turns) == ("human_asked", "kailai", 2, 1)
            assert (reply.tokens, reply.cost_usd) == (None, None)
        async with teamchat.conversation(Path("teamchat.toml"), session=reply.session) as other:
            told = [event async for event in other.stream("And?", to="eva")]
            assert [type(event) for event in told][-1] is teamchat.Reply
            assert any(isinstance(event, teamchat.events.Replied) for event in told)
            assert [message.content for message in other.messages] == [text for _, text in said()]
        with pytest.raises(errors.UnknownName, match="no session 's7'"):
            async with teamchat.conversation("teamchat.toml", session="s7"):
                raise AssertionError
        return other

    ended = asyncio.run(program())
    assert said()[:3] == [
        ("kailai", "[NEXT: max] Hi"),
        ("max", "Hello\n[NEXT: eva]"),
        ("eva", "Shall I?\n[NEXT: kailai]"),
    ]
    assert len(said()) == 7
    with pytest.raises(errors.StoreError, match=r"^the store .* is closed"):
        _ = ended.messages
    assert teamchat.load("teamchat.toml").name == world.joinpath("work").name


def test_code_without_a_loop_asks_in_any_thread_and_a_loop_is_not_blocked() -> None:
    actors({"max": ["reply", "Hello"]})

    async def wrong() -> None:
        teamchat.ask("teamchat.toml", "Hi", to="max")

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(teamchat.ask, "teamchat.toml", "Hi", to="max").result().text == "Hello"
    with pytest.raises(errors.UsageError, match=r"teamchat\.conversation"):
        asyncio.run(wrong())


@pytest.mark.parametrize("words", [{"message": 5}, {"message": None}, {"message": "Hi", "to": ["max"]}])
def test_what_is_no_text_is_refused_in_one_sentence(words: dict[str, Any]) -> None:
    actors({"max": ["reply", "Hello"]})
    with pytest.raises(errors.UsageError, match="expected a text"):
        teamchat.ask("teamchat.toml", **words)


def test_a_team_that_is_not_trusted_says_what_it_runs_and_how_it_is_trusted() -> None:
    actors({"max": ["reply", "Hello"]}, trusted=False)
    with pytest.raises(
        errors.NotTrusted, match=r"(?s)is not trusted yet; with it\n  max .*\ntrust=True .*teamchat trust"
    ):
        teamchat.ask("teamchat.toml", "Hi", to="max")
    assert teamchat.ask("teamchat.toml", "Hi", to="max", trust=True).text == "Hello"
    assert teamchat.ask("teamchat.toml", "Hi", to="max").session == "s2"


def test_a_failure_and_a_limit_are_errors_with_the_words_of_the_command_line() -> None:
    steps = {
        "max": ["err", "No key\n", "+", "exit-with", "3"],
        "ann": ["reply", "[NEXT: bea]"],
        "bea": ["reply", "[NEXT: ann]"],
    }
    actors(steps, team="[team.limits]\nturns = 2")
    with pytest.raises(errors.MemberFailed) as failed:
        teamchat.ask("teamchat.toml", "Hi", to="max")
    shown = run_here("send", "--new", "Hi", "--to", "max")
    assert (str(failed.value) in shown.err, failed.value.code) == (True, shown.code)
    file = Path.cwd() / "teamchat.toml"
    assert failed.value.__notes__ == [f"try: teamchat resume --team {file} --session s1"]
    with pytest.raises(errors.GuardReached):
        teamchat.ask("teamchat.toml", "Hi", to="ann")


def test_a_cancelled_send_leaves_no_process_and_the_conversation_goes_on(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = Pids(world / "pids")
    monkeypatch.setenv("AGENT_PIDS", str(pids.file))
    actors({"max": ["child", "+", "hang"], "eva": ["reply", "Hello"]})

    async def program() -> None:
        async with teamchat.conversation("teamchat.toml") as talk:
            sent = asyncio.create_task(talk.send("Hi", to="max"))
            while not pids.hang():  # noqa: ASYNC110 (the agent tells it by a file)
                await asyncio.sleep(0.01)
            waits = asyncio.create_task(talk.send("Never sent", to="eva"))
            await asyncio.sleep(0)
            assert len(pids.alive()) == 2
            for task in (waits, sent):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert pids.alive() == []
            assert queue() == [("max", "held")]
            assert (await talk.send("Hi", to="eva")).text == "Hello"

    asyncio.run(program())
    assert said() == [("kailai", "Hi"), ("kailai", "Hi"), ("eva", "Hello")]
    assert select("SELECT member, status FROM turns ORDER BY id") == [("max", "interrupted"), ("eva", "done")]
