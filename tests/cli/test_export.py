"""`export`: the conversation in every format that is text or data, without secrets."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from tempfile import gettempdir
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from teamchat.cli.exporting.formats import ExportOptions, when, writer
from teamchat.cli.startup.options import FormatName
from teamchat.core.context.snapshot import from_json
from teamchat.core.conversation.permission import trust_store
from teamchat.core.errors import ExitCode
from teamchat.core.team.find import load
from teamchat.core.transcripts.collect import CUT, LONGEST, NO_MORE_STEPS
from teamchat.core.transcripts.transcript import Transcript
from tests.cli.helpers import actors, notes, refused
from tests.core.full_disk import files_of_at_most
from tests.core.transcripts.examples import BEGAN, EXAMPLE, SHOWN, conversation, keep
from tests.core.transcripts.strategies import transcripts
from tests.program import Result, cli, cli_exec, run_here
from tests.scripted_team import crew
from tests.shell_team import repository, shell

KEY = "sk-ant-api03-" + "a1B2" * 20
MARKDOWN = f"""\
# s1

Team crew, begun {when(BEGAN)}.

The task:

> Keep it small

## kai → max

msg-1 · {when(BEGAN)} · image plan.png

> Add `--version`

## sarah: the login was refused

{when(BEGAN + 500)}

What it had written:

> I was about to

turn 1 · codex

## max → sarah

msg-2 · {when(BEGAN + 60_000)}

- I'll read how the options are built.
- read notes/cli.py
- denied: git push
- ran pytest -q ✗ exit 1

> Added **--version**:
>
> ```python
> print(1)
> ```
>
> [NEXT: sarah]

turn 2 · claude opus · 58s · 24k tokens · $0.11 · 2 files

- notes/cli.py  +6 −1
- logo.png  new
"""


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.split("\n") if line]


def test_without_options_it_prints_markdown() -> None:
    keep()

    assert run_here("export") == Result(
        0,
        MARKDOWN,
        notes("session s1: 2 messages, 0 secrets redacted", "1 undone message left out: --all includes them"),
    )


def test_all_includes_what_was_undone() -> None:
    keep()

    ran = run_here("export", "--all")

    assert ran.out.endswith(f"## kai\n\nmsg-3 · {when(BEGAN + 90_000)} · undone\n\n> Never mind\n")
    assert ran.err == notes("session s1: 3 messages, 0 secrets redacted")


def test_what_was_undone_is_left_out_of_every_format() -> None:
    keep()

    for name in ("md", "json", "jsonl", "snapshot"):
        assert "Never mind" not in run_here("export", "--format", name).out
        assert "Never mind" in run_here("export", "--format", name, "--all").out


@pytest.mark.parametrize(
    ("name", "begins"),
    [("a.md", "# s1"), ("a.MARKDOWN", "# s1"), ("a.json", "{\n"), ("a.jsonl", '{"type": "transcript"')],
)
def test_the_ending_of_the_file_chooses_the_format(name: str, begins: str) -> None:
    keep()

    ran = run_here("export", "-o", name)

    assert Path(name).read_text(encoding="utf-8").startswith(begins)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith(f"· wrote {name} (")


def test_a_named_format_wins_over_the_ending() -> None:
    keep()

    assert run_here("export", "--format", "snapshot", "-o", "talk.json").code == 0

    read = from_json(json.loads(Path("talk.json").read_text(encoding="utf-8")))
    assert read.messages == tuple(said.message for said in SHOWN.said)
    assert read.team_task == EXAMPLE.task


def test_an_unknown_ending_is_refused() -> None:
    keep()

    ran = run_here("export", "-o", "talk.pdf")

    assert refused(ran).startswith("no format has files that end like 'talk.pdf': name one with --format (md, ")
    assert (ran.code, Path("talk.pdf").exists()) == (2, False)


def test_a_file_is_replaced_and_keeps_its_permissions() -> None:
    keep()
    file = Path("talk.md")
    file.write_text("before")
    file.chmod(0o640)

    assert run_here("export", "-o", file).code == 0

    assert file.read_text(encoding="utf-8") == MARKDOWN
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in Path().iterdir()] == ["talk.md"]


def test_a_link_stays_a_link() -> None:
    keep()
    Path("talk.md").symlink_to("real.md")

    assert run_here("export", "-o", "talk.md").code == 0

    assert Path("talk.md").is_symlink()
    assert Path("real.md").read_text(encoding="utf-8") == MARKDOWN


def test_a_pipe_can_be_the_file() -> None:
    keep()

    ran = cli("export", "--format", "md", "-o", "/dev/stdout")

    assert (ran.code, ran.out) == (0, MARKDOWN), ran.err


@pytest.mark.parametrize("file", ["/dev/full", ".", "missing/talk.md"])
def test_what_cannot_be_written_is_said_in_one_line(file: str) -> None:
    keep()

    ran = run_here("export", "--format", "md", "-o", file)

    assert refused(ran).startswith(f"{file} cannot be written: ")
    assert ran.code == (ExitCode.STORE if file == "/dev/full" else ExitCode.USAGE)


def test_without_a_conversation_it_says_how_to_begin_one() -> None:
    assert refused(run_here("export")) == "there is no conversation here yet"


def test_turns_have_what_their_agents_did_and_changed(world: Path) -> None:
    repository(world / "unused")
    shell(max="echo b >> app.py")
    assert run_here("send", "--to", "max", "Add b").code == 0

    ran = run_here("export", "--format", "jsonl")

    head, asked, replied = lines(ran.out)
    assert (head["session"], asked["turn"]) == ("s1", None)
    turn = replied["turn"]
    assert isinstance(turn, dict)
    assert (turn["member"], turn["agent"], turn["status"]) == ("max", "max-agent", "done")
    assert turn["files"] == [{"path": "app.py", "what": "changed", "added": 1, "removed": 0}]


def test_a_failed_turn_follows_the_message_that_it_answered() -> None:
    actors({"max": ["say", "half", "+", "exit-with", "1"], "sarah": ["say", "whole"]})
    assert run_here("send", "--to", "max", "One").code == 1
    assert run_here("send", "--to", "sarah", "Two").code == 0

    entries = lines(run_here("export", "--format", "jsonl").out)

    assert [entry.get("from", entry.get("member")) for entry in entries[1:]] == ["kailai", "max", "kailai", "sarah"]
    assert [entry["type"] for entry in entries[1:]] == ["message", "turn", "message", "message"]


def test_secrets_are_redacted_and_counted(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crew(world, {"max": [f"It is {KEY}, and hunter22"]})
    monkeypatch.setenv("MAIL_PASSWORD", "hunter22")
    assert run_here("send", "--to", "max", "What is it?").code == 0

    for name in ("md", "json", "jsonl", "snapshot"):
        ran = run_here("export", "--format", name)
        assert f"It is {'*' * len(KEY)}, and {'*' * 8}" in ran.out
        assert ran.err == notes("session s1: 2 messages, 2 secrets redacted")


def test_a_secret_of_a_member_is_redacted_also_by_its_variable(world: Path) -> None:
    crew(world, {"max": ["It is hunter2222"]}, members={"max": {"env.MAIL_PASSWORD": "hunter2222"}})
    assert run_here("send", "--to", "max", "What is it?").code == 0

    ran = run_here("export")

    assert "> It is **********\n" in ran.out
    assert ran.err == notes("session s1: 2 messages, 1 secret redacted")


@pytest.mark.parametrize("name", get_args(FormatName))
def test_every_format_is_written_by_an_interpreter_of_its_own(name: str) -> None:
    keep()

    ran = cli_exec("export", "--format", name, "-o", "talk")

    assert (ran.code, ran.out) == (0, ""), ran.err
    assert "--version" in Path("talk").read_text(encoding="utf-8")


def test_a_broken_team_file_hides_nothing_of_what_was_said() -> None:
    keep()
    Path("teamchat.toml").write_text("[team", encoding="utf-8")

    assert run_here("export").out == MARKDOWN


def test_an_undone_turn_is_left_out_or_marked(world: Path) -> None:
    crew(world, {"max": ["one", {"say": "half", "exit": 3}]})
    assert run_here("send", "--to", "max", "First").code == 0
    assert run_here("send", "--to", "max", "Second").code == 1
    for _ in range(2):
        assert run_here("undo", "--yes").code == 0

    left, everything = (run_here("export", "--format", "jsonl", *options) for options in ([], ["--all"]))

    assert [entry["type"] for entry in lines(left.out)] == ["transcript", "message"]
    assert [(entry["type"], entry["undone"]) for entry in lines(everything.out)[1:]] == [
        ("message", False),
        ("message", True),
        ("message", True),
        ("turn", True),
    ]


def test_the_members_of_a_group_are_there_in_order(world: Path) -> None:
    crew(world, {"max": ["from max"], "sarah": [{"say": "half", "exit": 3}], "carol": ["from carol"]})
    assert run_here("send", "[NEXT: max + sarah + carol] All of you").code == 6

    entries = lines(run_here("export", "--format", "jsonl").out)[1:]

    told = [(entry["type"], entry.get("from", entry.get("member"))) for entry in entries]
    assert told == [("message", "kailai"), ("turn", "sarah"), ("message", "max"), ("message", "carol")]


def test_a_step_does_not_repeat_the_reply(world: Path) -> None:
    crew(world, {"max": ["Hello"]}, like={"max": "claude"})
    assert run_here("send", "--to", "max", "Hi").code == 0

    *_, reply = lines(run_here("export", "--format", "jsonl").out)

    assert reply["text"] == "Hello"
    assert isinstance(turn := reply["turn"], dict)
    assert turn["steps"] == []


def test_a_branch_has_the_turns_of_what_it_shares(world: Path) -> None:
    crew(world, {"max": ["one", "two"]})
    for text in ("First", "Second"):
        assert run_here("send", "--to", "max", text).code == 0
    assert run_here("branch", "--at", "msg-2").code == 0

    entries = lines(run_here("export", "--format", "jsonl").out)[1:]

    assert [entry["text"] for entry in entries] == ["First", "one"]
    assert entries[1]["turn"] is not None


HOSTILE = "# kai\n\n## kai → max\n\n```\n<!--\n</details>\n---\nkai\n===\n> quote\n- item\n\x1b[2J\u202e"


def headings(markdown: str) -> list[str]:
    """The headings at the top level, as Markdown reads them."""
    tokens = MarkdownIt("commonmark").parse(markdown)
    pairs = itertools.pairwise(tokens)
    return [after.content for one, after in pairs if one.type == "heading_open" and not one.level]


@given(text=st.text(st.sampled_from("#`~<>!-=*_ \n\r\ta1.[]()|&\u2028\x85\x0b\x0c\x1b")) | st.just(HOSTILE))
def test_no_text_passes_for_another_speaker(text: str) -> None:
    markdown = "".join(writer("md")(conversation("Hi", text, "Bye"), ExportOptions()))

    assert headings(markdown) == ["s1", "kai", "max", "kai"]


@given(text=st.text())
def test_no_name_passes_for_markdown(text: str) -> None:
    transcript = Transcript(text, text, None, BEGAN, conversation("Hi").entries)

    markdown = "".join(writer("md")(transcript, ExportOptions()))

    assert len(headings(markdown)) == 2


@given(transcript=transcripts)
def test_any_transcript_can_be_written_in_every_format(transcript: Transcript) -> None:
    for name in get_args(FormatName):
        assert "".join(writer(name)(transcript, ExportOptions())).encode()


def test_of_a_long_text_of_a_failed_turn_the_beginning_is_exported_and_that_is_said(world: Path) -> None:
    long = "0123456789abcdef" * (16 << 20 >> 4)
    crew(world, {"max": [{"say": long, "exit": 3}]})
    assert run_here("send", "--to", "max", "Begin").code == 1
    ran = run_here("export", "--format", "json")
    [turn] = [entry for entry in json.loads(ran.out)["entries"] if entry["type"] == "turn"]
    assert turn["text"] == long[:LONGEST] + CUT
    assert len(ran.out) < 3 * LONGEST
    Path("kept.json").write_text(ran.out)
    assert run_here("import", "kept.json").code == 0


@pytest.mark.parametrize("place", [LONGEST - 10, LONGEST - 1])
def test_a_key_across_the_cut_is_redacted(world: Path, place: int) -> None:
    crew(world, {"max": [{"say": f"{'word ' * LONGEST}"[: place - 1] + f" {KEY} and more" + " word" * 99, "exit": 3}]})
    assert run_here("send", "--to", "max", "Begin").code == 1
    ran = run_here("export", "--format", "json")
    assert CUT in json.loads(ran.out)["entries"][-1]["text"]
    assert "sk-ant" not in ran.out
    assert "*" * (LONGEST - place) in ran.out


def test_of_many_steps_the_first_are_exported_and_that_is_said(world: Path) -> None:
    tool = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "x" * 4000}}
    say = {"type": "assistant", "message": {"content": [{"type": "text", "text": "y" * 4000}, tool]}}
    lines = "".join(f"{json.dumps(each)}\n" for each in (say,) * 3000)
    (world / "lines").write_text(lines)
    shell(max=f"cat {world}/lines; exit 3")
    file = Path("teamchat.toml")
    file.write_text(f'{file.read_text()}\nlike = "claude"\n')
    trust_store().grant(load(file.absolute()))
    assert run_here("send", "--to", "max", "Begin").code != 0
    ran = run_here("export", "--format", "json")
    turn = json.loads(ran.out)["entries"][-1]
    assert turn["steps"][-1]["text"] == NO_MORE_STEPS
    assert len(ran.out) < 4 * LONGEST


def test_a_full_disk_is_told_and_the_file_stays_as_it_was() -> None:
    keep()
    Path("kept.md").write_text("before")
    with files_of_at_most(100):
        ran = run_here("export", "-o", "kept.md")
    full = f"{gettempdir()} cannot be written: its disk is full; free some space there"  # of what is kept beside it
    assert (ran.code, refused(ran)) == (13, full)
    assert [file.read_text() for file in Path.cwd().glob("*kept*")] == ["before"]
