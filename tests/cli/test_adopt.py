"""`adopt`: a member continues a copy of a session that a person began in the member's CLI."""

from __future__ import annotations

import json
import marshal
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from teamchat.cli.adopt import NO_WORDS
from teamchat.runners.claude.records import kept_in
from teamchat.runners.homes.records import READ
from teamchat.runners.untrusted.regular_files import LARGEST
from tests.cli.helpers import objects, queue, refused, said, select
from tests.fakes.scripted import spoken
from tests.program import Result, run_here
from tests.scripted_team import Crew, crew

IDS = ("0000aaaa-1111-4111-8111-111111111111", "0000bbbb-2222-4222-8222-222222222222")
MEMORY = {"memory": "resume"}
FRESH = (
    'max\'s memory is fresh: each of its turns begins a session of its own; give it memory = "resume" in the team file'
)
TOLD = "max continues a session begun in max-agent and last used on DAY, whose words the others do not see: "


def written(file: Path, lines: list[Mapping[str, object]], at: float) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(file, (at, at))
    return file


def record(like: str, session: str, first: str, at: float = 1_700_000_000.0, cwd: Path | None = None) -> Path:
    """What the CLI keeps of a session in that folder."""
    home, here = Path(os.environ["HOME"]), os.path.realpath(cwd or Path.cwd())
    if like == "claude":
        units = here.encode("utf-16-le", "surrogatepass")
        name = re.sub("[^A-Za-z0-9]", "-", "".join(chr(one) for one in memoryview(units).cast("H")))
        folder = home / ".claude/projects" / (name if len(name) <= 200 else f"{name[:200]}-ibmqnq")
        noise: list[Mapping[str, object]] = [
            {"type": "queue-operation", "content": first},
            {"type": "user", "isMeta": True, "message": {"content": "Caveat"}},
            {"type": "user", "message": {"content": "<command-name>/model</command-name>"}},
        ]
        return written(folder / f"{session}.jsonl", [*noise, {"type": "user", "message": {"content": first}}], at)
    if like == "codex":
        meta = {"type": "session_meta", "payload": {"id": session, "cwd": here}}
        item = {"type": "UserMessage", "content": [{"type": "text", "text": first}]}
        usage = {"input_tokens": 1000, "cached_input_tokens": 0, "output_tokens": 500}
        count = {"payload": {"type": "token_count", "info": {"total_token_usage": usage}}}
        lines: list[Mapping[str, object]] = [meta, {"payload": {"type": "item_completed", "item": item}}, count]
        return written(home / f".codex/sessions/2023/11/14/rollout-2023-11-14T22-13-20-{session}.jsonl", lines, at)
    project = home / ".gemini/tmp" / Path(here).name
    project.mkdir(parents=True, exist_ok=True)
    (project / ".project_root").write_text(here)
    context = {"type": "user", "content": [{"text": "<session_context>\nToday"}]}
    said = {"type": "user", "content": [{"text": first}]}
    file = project / f"chats/session-2023-11-14T22-13-{session[:8]}.jsonl"
    return written(file, [{"sessionId": session, "kind": "main"}, context, said], at)


def team(world: Path, like: str = "claude", *replies: str, **keys: object) -> Crew:
    there = replies or ("One.", "Two.", "Three.")
    return crew(world, {"max": there}, like={"max": like}, members={"max": {**MEMORY, **keys}})


def ran_with(number: int) -> list[str]:
    """The command of that turn."""
    ((argv,),) = select(f"SELECT json_extract(setup, '$.argv') FROM turns WHERE number = {number}")  # noqa: S608
    return [str(word) for word in json.loads(str(argv))]


def undated(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?", "DAY", text)


@pytest.mark.parametrize("like", ["claude", "codex", "gemini"])
def test_the_sessions_of_the_folder_are_listed_newest_first(world: Path, like: str) -> None:
    team(world, like)
    record(like, IDS[0], "The older one", 1_700_000_000)
    record(like, IDS[1], "The newer one,\nof two lines", 1_700_000_100)
    record(like, "0000cccc", "Of another folder", cwd=world / "elsewhere")
    ran = run_here("adopt", "max")
    assert undated(ran.out) == f"{IDS[1]}  DAY  The newer one, of two lines\n{IDS[0]}  DAY  The older one\n"
    assert (ran.code, ran.err) == (0, f"· continue one: teamchat adopt max {IDS[1]}\n")
    listed = objects(run_here("adopt", "max", "--json"))
    assert [(line["type"], line["id"], line["at"]) for line in listed] == [
        ("kept_session", IDS[1], 1_700_000_100),
        ("kept_session", IDS[0], 1_700_000_000),
    ]


@pytest.mark.parametrize(
    ("like", "forks", "resumes"),
    [
        ("claude", ["--resume", IDS[0], "--fork-session"], ["--resume", "v-1"]),
        ("codex", ["fork", IDS[0], "-"], ["resume", "v-1", "-"]),
    ],
)
def test_the_next_turn_continues_a_copy_and_the_others_are_told(
    world: Path, like: str, forks: list[str], resumes: list[str]
) -> None:
    made = team(world, like)
    original = record(like, IDS[0], "The password is xyzzy")
    before = original.read_bytes()
    ran = run_here("adopt", "max", "--last")
    assert (ran.code, undated(ran.err)) == (0, f"· {TOLD}The password is xyzzy\n")
    assert run_here("send", "First question").code == 0
    assert run_here("send", "Second question").code == 0
    told, *others = said()
    assert (told[0], undated(str(told[1]))) == ("teamchat", f"{TOLD}The password is xyzzy")
    assert others == [("kailai", "First question"), ("max", "One."), ("kailai", "Second question"), ("max", "Two.")]
    first, second = made.prompts("max")
    assert "whose words the others do not see" in first
    assert "whose words the others do not see" not in second
    assert " ".join(forks) in " ".join(ran_with(1))
    assert " ".join(resumes) in " ".join(ran_with(2))
    assert f"memory resume, continues a copy of {IDS[0]}, which a person began" in " ".join(
        run_here("show", "1").out.split()
    )
    assert original.read_bytes() == before
    assert run_here("adopt", "max").out.splitlines()[0].startswith(IDS[0])


def test_a_gemini_session_is_copied_under_another_name(world: Path) -> None:
    team(world, "gemini")
    original = record("gemini", IDS[0], "The password is xyzzy")
    before = original.read_bytes()
    assert run_here("adopt", "max", "--last").code == 0
    assert run_here("send", "First question").code == 0
    argv = ran_with(1)
    name = argv[argv.index("--resume") + 1]
    (copy,) = (file for file in original.parent.iterdir() if file != original)
    assert copy.name == f"session-2023-11-14T22-13-{name[:8]}.jsonl"
    assert copy.read_bytes() == before.replace(IDS[0].encode(), name.encode())
    assert (name != IDS[0], original.read_bytes()) == (True, before)


def test_usage_counts_from_the_adoption_on(world: Path) -> None:
    made = team(world, "codex")
    record("codex", IDS[0], "Long work")
    usage = [{"input_tokens": 1000 + 10 * turn, "output_tokens": 500 + turn} for turn in (1, 2)]
    replies = [{"say": spoken("codex", "One.", "v-9", one)} for one in usage]
    (made.scripts / "max.replies").write_bytes(marshal.dumps(replies))
    assert run_here("adopt", "max", "--last").code == 0
    used = [objects(run_here("send", "--json", "Go"))[-1]["usage"]]
    copy = record("codex", "v-9", "Long work")  # as Codex counts on in the copy
    copy.write_text(copy.read_text().replace("1000", "1010").replace("500", "501"))
    used.append(objects(run_here("send", "--json", "Go"))[-1]["usage"])
    counted = [(one["input_tokens"], one["output_tokens"]) for one in used if isinstance(one, dict)]
    assert counted == [(10, 1), (10, 1)]


def test_a_session_is_named_by_the_beginning_of_its_id(world: Path) -> None:
    team(world)
    for session in IDS:
        record("claude", session, "Words")
    assert refused(run_here("adopt", "max", "0000")) == "2 sessions of max-agent begin with '0000'"
    assert refused(run_here("adopt", "max", "ffff")).startswith("there is no session 'ffff' of max-agent in ")
    assert run_here("adopt", "max", "0000b").code == 0
    assert run_here("send", "Go").code == 0
    assert IDS[1] in ran_with(1)


def test_the_message_that_tells_of_it_has_no_key(world: Path) -> None:
    team(world)
    key = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    record("claude", IDS[0], f"Use {key} now")
    ran = run_here("adopt", "max", "--last")
    assert (ran.code, key in ran.err + str(said())) == (0, False)
    assert "whose words the others do not see: Use " in ran.err


def test_a_folder_without_sessions_has_none_to_adopt(world: Path) -> None:
    team(world)
    ran = run_here("adopt", "max")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("· there is no session of max-agent in ")
    assert run_here("adopt", "max", "--last").code == 4
    assert select("SELECT * FROM sessions") == []


@pytest.mark.parametrize(
    ("like", "keys", "error"),
    [
        ("plain", {}, "max's program (max-agent) has no sessions that could be adopted"),
        ("opencode", MEMORY, "max's program (max-agent) has no sessions that could be adopted"),
        ("claude", {"memory": "fresh"}, FRESH),
    ],
)
def test_a_member_that_continues_no_session_is_refused(
    world: Path, like: str, keys: Mapping[str, object], error: str
) -> None:
    crew(world, {"max": []}, like={"max": like}, members={"max": keys})
    record("claude", IDS[0], "Words")
    ran = run_here("adopt", "max", "--last")
    assert (ran.code, refused(ran)) == (2, error)


@pytest.mark.parametrize("like", ["claude", "codex", "gemini"])
def test_a_member_in_a_worktree_adopts_what_its_cli_continues_in_any_folder(world: Path, like: str) -> None:
    team(world, like, workspace="worktree", access="edit")
    record(like, IDS[0], "Words")
    ran = run_here("adopt", "max", "--last")
    if like == "gemini":
        told = "max works in a worktree of its own, where max-agent finds no session of yours"
        assert (ran.code, refused(ran)) == (2, told)
    else:
        assert (ran.code, "max continues a session begun in max-agent" in ran.err) == (0, True)


def test_a_person_has_no_session_to_continue(world: Path) -> None:
    team(world)
    assert refused(run_here("adopt", "kailai")) == "kailai is a person, who has no session to continue"


def test_nothing_is_adopted_while_members_wait(world: Path) -> None:
    team(world, "claude", "Which? [NEXT: kailai]")
    record("claude", IDS[0], "Words")
    assert run_here("send", "Go").code == 9
    ran = run_here("adopt", "max", "--last")
    assert (ran.code, refused(ran)) == (2, "this conversation waits for kailai; continue it first")
    assert queue() == [("kailai", "asked")]


def test_an_adoption_can_be_cancelled_until_a_turn_has_continued_it(world: Path) -> None:
    team(world)
    record("claude", IDS[0], "Words")
    assert run_here("adopt", "max", "--last").code == 0
    assert run_here("adopt", "max", "--cancel") == Result(0, "", "· max adopts no session\n")
    assert run_here("send", "Go").code == 0
    assert "--fork-session" not in ran_with(1)
    assert run_here("adopt", "max", "--last").code == 0
    assert run_here("send", "Go").code == 0
    assert "--fork-session" in ran_with(2)
    ran = run_here("adopt", "max", "--cancel")
    assert ran == Result(
        2, "", "teamchat: max has continued it in turn 2 or before\n  try: teamchat undo 2 --conversation\n"
    )
    assert refused(run_here("adopt", "max", "--cancel", "--last")) == "ID, --last and --cancel exclude each other"


def test_an_undone_turn_lets_the_next_one_adopt_again(world: Path) -> None:
    team(world)
    record("claude", IDS[0], "Words")
    assert run_here("adopt", "max", "--last").code == 0
    assert run_here("send", "Go").code == 0
    assert run_here("undo", "--yes").code == 0
    assert run_here("resume", "--drop").code == 0
    assert run_here("send", "Go on").code == 0
    assert "--fork-session" in ran_with(2)


def test_an_undo_of_what_came_before_it_undoes_the_adoption(world: Path) -> None:
    team(world)
    record("claude", IDS[0], "Words")
    assert run_here("send", "Go").code == 0
    assert run_here("adopt", "max", "--last").code == 0
    assert run_here("undo", "--yes").code == 0
    assert run_here("resume", "--drop").code == 0
    assert run_here("send", "Go on").code == 0
    assert "--fork-session" not in ran_with(2)


def test_a_failed_turn_lets_the_next_one_adopt_again(world: Path) -> None:
    made = team(world)
    record("claude", IDS[0], "Words")
    made.say("max", {"exit": 1, "err": "broken\n"}, "Now.")
    assert run_here("adopt", "max", "--last").code == 0
    assert run_here("send", "Go").code == 1
    assert run_here("resume").code == 0
    assert "--fork-session" in ran_with(2)


def test_a_session_that_has_gone_is_replaced_by_a_fresh_one(world: Path) -> None:
    made = team(world)
    record("claude", IDS[0], "Words")
    gone = f"No conversation found with session ID: {IDS[0]}\n"
    made.say("max", {"exit": 1, "err": gone}, "Fresh.")
    assert run_here("adopt", "max", "--last").code == 0
    ran = run_here("send", "Go")
    assert (ran.code, ran.out) == (0, "max:\nFresh.\n\n")
    assert ["--fork-session" in ran_with(turn) for turn in (1, 2)] == [True, False]


def test_a_members_own_session_is_not_listed(world: Path) -> None:
    team(world)
    assert run_here("send", "Go").code == 0
    record("claude", "v-1", "What teamchat said")
    record("claude", IDS[0], "What a person said")
    assert [line.split()[0] for line in run_here("adopt", "max").out.splitlines()] == [IDS[0]]


@pytest.mark.parametrize("like", ["claude", "codex", "gemini"])
def test_damaged_records_are_left_out(world: Path, like: str) -> None:
    team(world, like)
    good = record(like, IDS[0], "Words")
    for number, content in enumerate((b"", b"\xff\xfe\0", b'{"type": "user", "message": 3}\n', b"[" * 5000, b"{}\n")):
        good.with_name(good.name.replace("0000aaaa", f"dead000{number}")).write_bytes(content)
    os.mkfifo(good.with_name(good.name.replace("0000aaaa", "dead0009")))
    ran = run_here("adopt", "max")
    assert (ran.code, [line.split()[0] for line in ran.out.splitlines()]) == (0, [IDS[0]])


@pytest.mark.parametrize("like", ["claude", "codex", "gemini"])
@pytest.mark.parametrize("first", ["<Button> does not compile, why?", "Why?\n" + "x" * 400_000])
def test_the_newest_is_adopted_whatever_its_first_prompt_is(world: Path, like: str, first: str) -> None:
    team(world, like)
    record(like, IDS[0], "An older question", 1_700_000_000)
    record(like, IDS[1], first, 1_700_000_100)
    assert run_here("adopt", "max").out.startswith(IDS[1])
    words = first.split("\n", maxsplit=1)[0]
    assert words in run_here("adopt", "max", "--last").err


@pytest.mark.parametrize("like", ["claude", "codex", "gemini"])
def test_a_picture_of_megabytes_in_the_first_prompt_hides_no_session(world: Path, like: str) -> None:
    team(world, like)
    file = record(like, IDS[0], "What is this?")
    picture, text = {"type": "image", "data": "A" * 3_000_000}, {"type": "text", "text": "What is this?"}
    said = (
        '"What is this?"' if like == "claude" else json.dumps([text if like == "codex" else {"text": "What is this?"}])
    )
    file.write_text(file.read_text().replace(said, json.dumps([picture, text])))
    assert file.stat().st_size > 3_000_000
    assert "What is this?" in run_here("adopt", "max").out


@pytest.mark.parametrize("like", ["claude", "gemini"])
def test_a_session_without_words_of_a_person_is_listed_and_taken(world: Path, like: str) -> None:
    team(world, like)
    record(like, IDS[0], "An older question", 1_700_000_000)
    own = "<command-name>/model</command-name>" if like == "claude" else "<session_context>\nToday"
    record(like, IDS[1], own, 1_700_000_100)
    assert undated(run_here("adopt", "max").out).startswith(f"{IDS[1]}  DAY  (its first words cannot be read)\n")
    ran = run_here("adopt", "max", "--last")
    assert (ran.code, undated(ran.err)) == (0, f"· {TOLD.removesuffix(': ')}\n")
    assert run_here("send", "Go on").code == 0
    assert IDS[1] in " ".join(ran_with(1)) or like == "gemini"


def test_a_compressed_session_of_codex_is_listed_by_its_name(world: Path) -> None:
    team(world, "codex")
    session = "01a221ab-a39d-7e12-8ea4-7e117fdbe8c5"
    file = record("codex", session, "Remember teal")
    file.rename(file.with_name(f"{file.name}.zst")).write_bytes(b"\x28\xb5\x2f\xfd")
    assert undated(run_here("adopt", "max").out) == f"{session}  DAY  (its first words cannot be read)\n"
    assert run_here("adopt", "max", session[:8]).code == 0


@pytest.mark.parametrize("length", [199, 200, 201, 260])
def test_a_folder_of_a_long_path_has_its_sessions(world: Path, monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    del world
    here = Path(os.path.realpath(Path.cwd()))
    rest = length - len(str(here)) - 1
    place = here / ("d" * (rest // 2)) / ("e" * (rest - rest // 2 - 1))
    place.mkdir(parents=True)
    monkeypatch.chdir(place)
    team(place)
    record("claude", IDS[0], "Mine")
    other = record("claude", IDS[1], "Of a folder whose name begins alike")
    if length > 200:
        other.write_text('{"cwd": "/elsewhere"}\n' + other.read_text())
    listed = run_here("adopt", "max").out
    assert (IDS[0] in listed, IDS[1] in listed) == (True, length <= 200)


def test_a_session_that_is_not_listed_is_taken_by_its_whole_name(world: Path) -> None:
    team(world)
    record("claude", IDS[0], "The oldest", 1_600_000_000)
    for number in range(200):
        record("claude", f"{number:08}-1111-4111-8111-111111111111", "Another", 1_700_000_000 + number)
    assert IDS[0] not in run_here("adopt", "max").out
    assert run_here("adopt", "max", IDS[0][:8]).code == 4
    assert "The oldest" in run_here("adopt", "max", IDS[0]).err


@pytest.mark.parametrize(("mine", "others"), [("文档", "代码"), ("a1-sub", "a1/sub")])
def test_a_session_of_another_folder_with_the_same_name_in_claude_is_not_taken(
    world: Path, monkeypatch: pytest.MonkeyPatch, mine: str, others: str
) -> None:
    here, there = world / mine, world / others
    here.mkdir(parents=True)
    there.mkdir(parents=True)
    monkeypatch.chdir(here)
    team(here)
    for session, cwd in zip(IDS, (here, there), strict=True):
        file = record("claude", session, "Words")
        row = {"type": "user", "isMeta": True, "cwd": str(cwd), "message": {"content": "Caveat"}}
        file.write_text(json.dumps(row) + "\n" + file.read_text())
    record("claude", "0000cccc", "Without a folder")
    assert {line.split()[0] for line in run_here("adopt", "max").out.splitlines()} == {IDS[0], "0000cccc"}
    assert run_here("adopt", "max", IDS[1]).code == 4


def test_a_folder_in_a_record_that_no_path_can_name_is_another_one(world: Path) -> None:
    team(world)
    file = record("claude", IDS[0], "Words")
    file.write_text(json.dumps({"cwd": "/a\0b"}) + "\n" + file.read_text())
    assert run_here("adopt", "max").out == ""


@pytest.mark.parametrize("name", ["🚀app", f"{'🚀' * 55}{'d' * 30}"], ids=["short", "cut"])
def test_claude_has_a_dash_for_each_utf_16_unit_of_an_emoji(world: Path, name: str) -> None:
    place = world / name
    place.mkdir()
    record("claude", IDS[0], "Words", cwd=place)
    assert [session.id for session in kept_in(os.environ, place)] == [IDS[0]]


def test_a_gemini_session_that_is_too_large_to_copy_is_refused(world: Path) -> None:
    team(world, "gemini")
    file = record("gemini", IDS[0], "Words")
    os.truncate(file, LARGEST + 1)
    assert IDS[0] in run_here("adopt", "max").out
    ran = run_here("adopt", "max", "--last")
    told = f"session {IDS[0]} has a record of more than 67,108,864 bytes, which is too large to copy"
    assert (ran.code, refused(ran)) == (2, told)
    assert select("SELECT * FROM sessions") == []
    os.truncate(file, LARGEST)
    assert run_here("adopt", "max", "--last").code == 0


@pytest.mark.parametrize("like", ["claude", "codex"])
def test_a_first_row_of_more_than_is_read_hides_no_session(world: Path, like: str) -> None:
    team(world, like)
    file = record(like, IDS[0], "x" * (READ + 1_000_000))
    if like == "claude":
        file.write_text(
            "".join(row for row in file.read_text().splitlines() if '"user", "message": {"content": "xxx' in row)
        )
    assert undated(run_here("adopt", "max").out) == f"{IDS[0]}  DAY  (its first words cannot be read)\n"
    assert run_here("adopt", "max", IDS[0]).code == 0


def test_a_large_record_of_a_subagent_is_left_out(world: Path) -> None:
    team(world)
    row = {"type": "user", "isSidechain": True, "message": {"content": "Look"}}
    file = record("claude", IDS[0], "Words")
    file.write_text(json.dumps(row) + "\n" + json.dumps({**row, "rest": "x" * READ}) + "\n")
    assert run_here("adopt", "max").out == ""


@pytest.mark.parametrize("like", ["claude", "codex", "gemini"])
def test_a_file_whose_name_is_no_utf_8_is_left_out(world: Path, like: str) -> None:
    team(world, like)
    good = record(like, IDS[0], "Words")
    bad = os.fsencode(good.with_name(good.name.replace("0000aaaa", "dead"))).replace(b"dead", b"dead\xff")
    Path(os.fsdecode(bad)).write_text(good.read_text().replace(IDS[0], IDS[1]))
    assert [line["id"] for line in objects(run_here("adopt", "max", "--json"))] == [IDS[0]]
    assert run_here("adopt", "max", "dead").code == 4


@pytest.mark.parametrize("like", ["claude", "codex", "gemini"])
def test_a_session_whose_name_would_be_an_option_is_refused(world: Path, like: str) -> None:
    team(world, like)
    record(like, "--x", "Words")
    assert run_here("adopt", "max").out == ""
    assert run_here("adopt", "max", "--last").code == 4
    ran = run_here("adopt", "max", "--", "--x")
    assert (ran.code, refused(ran)) == (4, "the name '--x' begins with '-', which max-agent would take for an option")


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("<command-line> option is broken, why?", "<command-line> option is broken, why?"),
        ("<bash-completion> file", "<bash-completion> file"),
        ("<system-reminder>\nToday\n</system-reminder>\nWhy?", "Why?"),
        ("<bash-input>ls</bash-input><bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>\n\nAnd?", "And?"),
        ("<system-reminder> tags are what?", "<system-reminder> tags are what?"),
        ("<command-message>init</command-message>\n<command-name>/init</command-name>", NO_WORDS),
        ("<local-command-stdout></local-command-stdout>", NO_WORDS),
        ("<local-command-caveat>Caveat</local-command-caveat>", NO_WORDS),
    ],
)
def test_only_claudes_own_blocks_are_left_out_of_a_first_prompt(world: Path, first: str, words: str) -> None:
    team(world)
    record("claude", IDS[0], first)
    assert undated(run_here("adopt", "max").out) == f"{IDS[0]}  DAY  {words}\n"
