"""The contract of all runners: however an agent misbehaves, it ends, its tree is gone, and nobody is told a lie.

Each test is the whole way of a turn, from `teamchat send` to the store, of a fake program that speaks as each kind of
agent does. What failed is run again in the end, as a retry that its receipt names.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from teamchat.core.turn import execution, plan
from teamchat.runners.child.running import Launch
from teamchat.runners.child.supervisor import Clocks
from tests.cli.contract.vendor_output import ANSWER, EVENTFUL, GONE, HALF, LIVE, VOICES, Voice, lines, raw
from tests.cli.helpers import actors, objects, queue, said, select
from tests.program import Result, run_here
from tests.runners.processes import Pids

MIB = 1 << 20
TURNS = "SELECT * FROM turns"
every = pytest.mark.parametrize("voice", [*VOICES, LIVE], ids=lambda voice: voice.name)
each_once = pytest.mark.parametrize("voice", VOICES, ids=lambda voice: voice.name)  # of a process for one turn
eventful = pytest.mark.parametrize("voice", EVENTFUL, ids=lambda voice: voice.name)
WAYS = [  # a plain program and one CLI; what else differs is the parsers, which tests/runners damages more
    pytest.param(voice, id=voice.name, marks=() if voice in VOICES[:2] else pytest.mark.long) for voice in VOICES
]
every_way = pytest.mark.parametrize("voice", [*WAYS, pytest.param(LIVE, id=LIVE.name)])
each_way_once = pytest.mark.parametrize("voice", WAYS)


@dataclass(frozen=True)
class Scene:
    """Where the member max is an agent that misbehaves."""

    pids: Pids
    folder: Path

    def send(self, voice: Voice, *steps: str, message: str = "Hi", **keys: object) -> Result:
        """Let max, whose table in the team file has these keys, do these steps; nothing of him is left behind."""
        member = {"memory": "live", **keys} if voice.stays else keys
        actors({"max": steps}, like=voice.protocol, members={"max": member}, team="[team]\nmax_bytes = 12000000")
        ran = run_here("send", message)
        assert self.pids.all()
        assert self.pids.alive() == []
        assert list(Path(os.environ["TMPDIR"]).iterdir()) == []
        assert [path for path in self.folder.rglob("turns/*") if path.is_dir()] == []
        return ran

    def assert_answered(self, ran: Result, text: str, *, note: str | None = None) -> None:
        """The whole text was stored as the reply, and shown."""
        assert ran.code == 0, ran.err
        assert [words for name, words in said() if name == "max"] == [text]
        assert queue() == []
        assert (note or "") in run_here("show").out
        assert objects(run_here("show", "--json"))[0]["partial"] == ""

    def assert_failed(
        self, ran: Result, voice: Voice, code: int, reason: str, partial_text: str = "", *, tries: int = 1
    ) -> None:
        """It is told, with the code and in words, and nothing of it is a message; the partial text is kept."""
        assert (ran.code, ran.out) == (code, "")
        assert f"failed: max {reason}; held: max\n" in ran.err
        assert ran.err.endswith("teamchat resume\n")
        assert [name for name, _ in said()] == ["kailai"]
        assert queue() == [("max", "held")]
        (receipt,) = objects(run_here("show", "--json"))
        assert (receipt["status"], receipt["partial"]) == ("failed", partial_text)
        shown = run_here("show").out
        assert f"  failed    {reason} " in shown
        assert f"[exit code {code}]\n" in shown
        assert ("partial text (never a message, never in a prompt):" in shown) == bool(partial_text.strip())
        self._assert_tried_again(voice, tries)

    def _assert_tried_again(self, voice: Voice, tries: int) -> None:
        before = select(TURNS)
        assert len(before) == tries
        actors({"max": raw(voice.whole())}, like=voice.protocol)
        assert run_here("resume", "--retry", "--quiet").code == 0
        assert said()[1:] == [("max", ANSWER)]
        assert f", attempt {tries + 1}\n" in run_here("show").out
        assert select(TURNS)[:tries] == before  # with its partial text


@pytest.fixture
def scene(pids: Pids, world: Path) -> Scene:
    return Scene(pids, world / "state")


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock that no key sets: from the CLI's own result to its exit."""
    monkeypatch.setattr(plan, "Clocks", partial(Clocks, exit_s=0.3))


# --- it hangs


@every
@pytest.mark.usefixtures("_until_it_hangs")
def test_it_hangs_before_its_first_byte(scene: Scene, voice: Voice) -> None:
    ran = scene.send(voice, "tool", "+", "daemon", "+", "hang", first_byte="0.3s")
    scene.assert_failed(ran, voice, 3, "wrote nothing in its first 0.3 s (first_byte)")


@every
@pytest.mark.usefixtures("_until_it_hangs")
def test_it_hangs_in_the_middle_of_its_answer(scene: Scene, voice: Voice) -> None:
    ran = scene.send(voice, *raw(voice.half), "+", "hang", stall="0.3s")
    scene.assert_failed(ran, voice, 3, "was silent for 0.3 s (stall)", HALF)


@eventful
@pytest.mark.usefixtures("_soon", "_until_it_hangs")
def test_it_hangs_after_its_result(scene: Scene, voice: Voice) -> None:
    ran = scene.send(voice, *raw(voice.whole()), "+", "hang")
    scene.assert_failed(ran, voice, 3, "did not exit within 0.3 s after its result", ANSWER)


@every
@pytest.mark.usefixtures("_until_it_hangs")
def test_it_ignores_every_polite_signal(scene: Scene, voice: Voice) -> None:
    steps = ("tool", "+", "daemon", "+", *raw(voice.half, b"\n"), "+", "deaf", "+", "hang")
    ran = scene.send(voice, *steps, timeout="0.3s")
    heard = HALF if voice.eventful else f"{HALF}\ndeaf"
    scene.assert_failed(ran, voice, 3, "was still running after 0.3 s (its timeout)", heard)


# --- it leaves something behind


@each_once
@pytest.mark.parametrize("child", ["child", "daemon", "tool"])
def test_it_leaves_a_child_behind(scene: Scene, voice: Voice, child: str) -> None:
    ran = scene.send(voice, child, "+", *raw(voice.whole()))
    scene.assert_answered(ran, ANSWER, note="ended processes that it left running: s")


@eventful
@pytest.mark.parametrize("child", ["grandchild", "chatterer"])
def test_it_leaves_a_child_behind_that_holds_its_output(scene: Scene, voice: Voice, child: str) -> None:
    ran = scene.send(voice, child, "+", *raw(voice.whole()))
    scene.assert_answered(ran, ANSWER, note="ended processes that it left running: s")


@pytest.mark.parametrize("then", [("hang",), ("exit-with", "3")], ids=lambda then: then[0])
def test_one_that_stays_has_answered_with_its_result_and_ends_with_the_run(scene: Scene, then: tuple[str, ...]) -> None:
    """Whatever it does afterwards: its turn was over."""
    children = ("tool", "+", "daemon", "+", "grandchild", "+", "deaf", "+")
    scene.assert_answered(scene.send(LIVE, *children, *raw(LIVE.whole()), "+", *then), ANSWER)


# --- it exits without an answer


def tries_of(voice: Voice) -> int:
    """How often a turn is run that ends without a word on how it went: by a process that was to stay, once more."""
    return 1 + voice.stays


@every
def test_it_says_nothing_and_exits_with_0(scene: Scene, voice: Voice) -> None:
    ran = scene.send(voice, "exit-with", "0")
    early = "ended with exit code 0 before it had finished its answer"
    scene.assert_failed(ran, voice, 1, early if voice.eventful else "finished without an answer", tries=tries_of(voice))


@each_once
@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_its_answer_is_blank(scene: Scene, voice: Voice, text: str) -> None:
    ran = scene.send(voice, *raw(voice.whole(text)))
    scene.assert_failed(
        ran, voice, 1, "finished without an answer", voice.heard(voice.whole(text)) if not voice.eventful else ""
    )


@pytest.mark.parametrize("voice", [*EVENTFUL, LIVE], ids=lambda voice: voice.name)
def test_it_exits_with_0_in_the_middle_of_its_answer(scene: Scene, voice: Voice) -> None:
    ran = scene.send(voice, *raw(voice.half))
    scene.assert_failed(
        ran, voice, 1, "ended with exit code 0 before it had finished its answer", HALF, tries=tries_of(voice)
    )


@pytest.mark.parametrize(
    ("voice", "events"),
    [(voice, events) for voice in (*EVENTFUL, LIVE) for events in voice.failures],
    ids=lambda value: value.name if isinstance(value, Voice) else str(len(value)),
)
@pytest.mark.parametrize("code", [0, 1])
def test_it_says_itself_that_it_failed(scene: Scene, voice: Voice, events: tuple[dict[str, object]], code: int) -> None:
    ran = scene.send(voice, *raw(voice.half, lines(events)), "+", "exit-with", str(code))
    scene.assert_failed(ran, voice, 1, f"reported an error: {GONE}", HALF)


@pytest.mark.parametrize(
    ("said_so", "code", "reason"),
    [
        ("Not logged in", 11, "is not logged in, or the login was refused: Not logged in"),
        ("rate limit reached", 1, "reached a rate limit or quota: rate limit reached"),
        ("overloaded", 1, "got no answer from its model's service: overloaded"),
        ("Prompt is too long", 12, "got a prompt that is too large: Prompt is too long"),
        ("cannot be used with root", 5, "cannot run with this access: cannot be used with root"),
    ],
)
def test_every_kind_of_failure_has_its_code_and_can_be_assert_tried_again(
    scene: Scene, said_so: str, code: int, reason: str
) -> None:
    claude = EVENTFUL[0]
    end = lines([{"type": "result", "subtype": "success", "is_error": True, "result": said_so}])
    scene.assert_failed(scene.send(claude, *raw(claude.half, end), "+", "exit-with", "1"), claude, code, reason, HALF)


@every
def test_it_dies_by_a_signal(scene: Scene, voice: Voice) -> None:
    ran = scene.send(voice, *raw(voice.half), "+", "die", "SIGSEGV")
    when = " before it had finished its answer" if voice.eventful else ""
    scene.assert_failed(ran, voice, 1, f"was ended by SIGSEGV{when}", HALF, tries=tries_of(voice))


@every
def test_it_fails_with_its_reason_on_stderr(scene: Scene, voice: Voice) -> None:
    ran = scene.send(voice, *raw(voice.half), "+", "err", "error: no such model", "+", "exit-with", "3")
    reason = "reported an error: no such model" if voice.eventful else "ended with exit code 3: error: no such model"
    scene.assert_failed(ran, voice, 1, reason, HALF, tries=tries_of(voice))


@each_once
def test_it_answers_and_fails_then(scene: Scene, voice: Voice) -> None:
    ran = scene.send(voice, *raw(voice.whole()), "+", "exit-with", "3")
    scene.assert_failed(
        ran, voice, 1, "ended with exit code 3" + (" after it had answered" if voice.eventful else ""), ANSWER
    )


# --- it says odd things, and answers


JUNK = b"\x1b[2J\x1b]0;title\x07 no event \xff\x00 }{\n\n" + b'[1, 2]\n"text"\n3\nnull\n' + b'{"half": \n'
NOVEL = lines([{"type": "never.heard.of", "text": "no"}, {"type": 7}, {"type": "result.new"}, {}, {"event": "x"}])


@every_way
@pytest.mark.parametrize(
    ("before", "after"),
    [(JUNK, JUNK), (NOVEL, NOVEL), (b"\r\n", b"\n" * 100), (b"", b"\0")],
    ids=["junk", "unknown events", "blank lines", "a nul"],
)
def test_it_prints_more_than_its_events(scene: Scene, voice: Voice, before: bytes, after: bytes) -> None:
    ran = scene.send(voice, *raw(before, voice.whole(), after))
    scene.assert_answered(ran, voice.heard(before, voice.whole(), after))
    assert "\x1b" not in ran.out + ran.err


@every_way
def test_its_last_line_has_no_end(scene: Scene, voice: Voice) -> None:
    scene.assert_answered(scene.send(voice, *raw(voice.whole().removesuffix(b"\n"))), ANSWER)


@every_way
def test_its_output_comes_byte_by_byte(scene: Scene, voice: Voice) -> None:
    scene.assert_answered(scene.send(voice, "trickle", voice.whole().hex()), ANSWER)


@each_way_once
@pytest.mark.parametrize(
    ("odd", "kept"),
    [
        (b"a\xffb\xc3", "a\ufffdb\ufffd"),
        (b"\xed\xa0\x80", "\ufffd" * 3),
        ("one\u2028two\u2029three\x85four".encode(), "one\u2028two\u2029three\x85four"),
    ],
    ids=["invalid UTF-8", "a surrogate in UTF-8", "line ends of Unicode"],
)
def test_its_answer_has_odd_bytes(scene: Scene, voice: Voice, odd: bytes, kept: str) -> None:
    ran = scene.send(voice, *raw(voice.whole("@@").replace(b"@@", odd)))
    scene.assert_answered(ran, kept)


@every_way
def test_what_could_act_on_a_terminal_is_stored_and_not_shown(scene: Scene, voice: Voice) -> None:
    text = "a\x00b \x1b[31mred\x1b[0m \x1b]0;title\x07\x1b]52;c;aGk=\x1b\\ \x9b2J end"
    ran = scene.send(voice, *raw(voice.whole(text)))
    scene.assert_answered(ran, text)
    assert ran.out == "max:\nab red   end\n\n"


# --- what it does with its prompt


@each_way_once
@pytest.mark.parametrize("steps", ["", "close-stdin +", "read-slowly 0.02 +"])
def test_it_does_not_read_its_prompt_as_it_should(scene: Scene, voice: Voice, steps: str) -> None:
    ran = scene.send(voice, *steps.split(), *raw(voice.whole()), message="long " * 60_000)
    scene.assert_answered(ran, ANSWER)


@pytest.mark.parametrize("steps", [(), ("close-stdin", "+")], ids=["never", "closed"])
def test_one_that_stays_does_not_read_its_prompt(scene: Scene, steps: tuple[str, ...]) -> None:
    scene.assert_answered(scene.send(LIVE, *steps, *raw(LIVE.whole()), message="long " * 60_000), ANSWER)


# --- it says too much


@every_way
def test_it_writes_without_end(scene: Scene, voice: Voice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "Launch", partial(Launch, max_output=MIB))
    ran = scene.send(voice, *raw(voice.half), "+", "endless")
    (receipt,) = objects(run_here("show", "--json"))
    assert str(receipt["partial"]).startswith(HALF)
    scene.assert_failed(ran, voice, 1, "wrote more than 1 MiB and was stopped", str(receipt["partial"]))


@pytest.mark.parametrize("voice", [*VOICES[:2], LIVE], ids=lambda voice: voice.name)
def test_it_floods_stderr(scene: Scene, voice: Voice) -> None:
    scene.assert_answered(scene.send(voice, "flood-err", "20", "+", *raw(voice.whole())), ANSWER)


@pytest.mark.parametrize("voice", [*VOICES[:2], LIVE], ids=lambda voice: voice.name)
def test_its_answer_is_one_line_of_5_megabytes(scene: Scene, voice: Voice) -> None:
    scene.assert_answered(scene.send(voice, "inflated", voice.whole("@@").hex(), "5"), "x" * 5_000_000)
