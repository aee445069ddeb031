"""One turn: its events, its clocks and how it is judged; with scripted processes, and at the end with real ones."""

from __future__ import annotations

import asyncio
import re
import selectors
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec.structs import replace

from teamchat.runners.agent_events import AgentEvent, Denied, Failure, FailureKind, Note, Text, TextDelta, Usage
from teamchat.runners.base import EventParser, StopRule
from teamchat.runners.child import supervisor as turn
from teamchat.runners.child.process import ChildProcess, launch
from teamchat.runners.child.running import Exit, Launch, Running
from teamchat.runners.child.supervisor import INTERRUPTED, Clocks, Stopper, TurnEnd, run_turn
from teamchat.runners.claude.events import ClaudeEvents
from teamchat.runners.codex.events import CodexEvents
from teamchat.runners.gemini.events import GeminiEvents
from teamchat.runners.pipe import PipeOutput
from tests.fakes.scripted import spoken
from tests.leftovers import marked
from tests.runners.processes import PATIENCE_S, Pids, agent, children, eventually
from tests.runners.scripted import (
    HANG,
    WORDS,
    Err,
    HurriedLoop,
    HurriedSelector,
    ScriptedProcess,
    WordParser,
    loop_time,
)

SHORT = 0.2
LONG = Clocks(PATIENCE_S, PATIENCE_S, PATIENCE_S, PATIENCE_S, PATIENCE_S)


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "TICK_S", 0.01)
    monkeypatch.setattr(turn, "time", SimpleNamespace(monotonic=loop_time))


@dataclass
class Taken:
    """A turn that was run to its end."""

    events: list[AgentEvent] = field(default_factory=list)
    ended: TurnEnd | None = None

    @property
    def end(self) -> TurnEnd:
        assert self.ended is not None
        return self.ended

    @property
    def failure(self) -> Failure:
        assert self.end.failure is not None
        return self.end.failure

    @property
    def notes(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Note)]


def take(
    make: Callable[[], Running],
    parser: EventParser | None = None,
    clocks: Clocks = LONG,
    stop_at: tuple[float, ...] = (),
    stop_on: str | None = None,
    emit: Callable[[Sequence[AgentEvent]], None] | None = None,
    why: Failure = INTERRUPTED,
) -> Taken:
    """Run a turn, a scripted one in no time.

    It is stopped `stop_at` these seconds, and when text with `stop_on` in it is told: by Ctrl-C, or for another reason,
    `why`.
    """
    taken = Taken()

    async def main() -> TurnEnd:
        stopper = Stopper()
        for seconds in stop_at:
            asyncio.get_running_loop().call_later(seconds, stopper.request, why)

        def tell(events: Sequence[AgentEvent]) -> None:
            taken.events += events
            if stop_on and any(isinstance(event, TextDelta) and stop_on in event.text for event in events):
                stopper.request()

        return await run_turn(make(), parser or WordParser(), clocks, stopper, emit or tell)

    with asyncio.Runner(loop_factory=HurriedLoop if isinstance(make, Scripted) else None) as runner:
        taken.ended = runner.run(asyncio.wait_for(main(), 2 * PATIENCE_S))
    return taken


def said(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


class Scripted:
    """Makes one `ScriptedProcess` inside the running loop and keeps it for the test to look at."""

    def __init__(self, *script: bytes | float | Err, **options: object) -> None:
        self.script, self.options = script, options
        self.process: ScriptedProcess

    def __call__(self) -> ScriptedProcess:
        self.process = ScriptedProcess(*self.script, **self.options)  # type: ignore[arg-type]
        return self.process


# --- what a turn tells


def test_a_turn_tells_its_events_in_order_and_gathers_what_they_say() -> None:
    words = ["started", "session", "tool", "denied", "result", "usage", "hello", "done"]
    taken = take(Scripted(said(*words), left=("sleep",)))
    assert taken.events == [WORDS.get(word.encode(), Text(word)) for word in words]
    assert replace(taken.end, exit=replace(taken.end.exit, seconds=0.0), first_byte_s=None) == TurnEnd(
        text="hello",
        failure=None,
        exit=Exit(0, left=("sleep",)),
        usage=Usage(3, output_tokens=4),
        denied=(Denied("Write", "a.txt"),),
        vendor_session="s-1",
        model="m-1",
    )


def test_times_count_from_the_start() -> None:
    end = take(Scripted(SHORT, said("done"), SHORT)).end
    assert end.first_byte_s == pytest.approx(SHORT)
    assert end.exit.seconds == pytest.approx(2 * SHORT)


def test_lines_and_characters_may_come_in_pieces() -> None:
    pieces = [bytes([byte]) for byte in "ä€🎉\nsecond\ndone\n".encode()]
    assert take(Scripted(*pieces)).end.text == "ä€🎉\nsecond"


def test_the_last_line_needs_no_newline() -> None:
    taken = take(Scripted(said("done"), b"the last", Err(b"retry")))
    assert taken.events == [WORDS[b"done"], Text("the last"), WORDS[b"retry"]]
    assert taken.end.text == "the last"


def test_of_stderr_the_tail_is_kept() -> None:
    end = take(Scripted(Err(b"x" * 100_000), Err(b"\xff the end\n"))).end
    assert end.stderr_tail.endswith("x\ufffd the end\n")
    assert len(end.stderr_tail) == turn.TAIL_BYTES
    assert end.failure == Failure(FailureKind.AGENT, f"code 0: {end.stderr_tail}")


# --- clocks


def test_the_first_byte_has_a_clock() -> None:
    scripted = Scripted(Err(b"loading\n"), HANG)
    taken = take(scripted, clocks=replace(LONG, first_byte_s=SHORT))
    assert taken.failure == Failure(FailureKind.TIMEOUT, "wrote nothing in its first 0.2 s (first_byte)")
    assert taken.end.first_byte_s is None
    assert scripted.process.stops == [False]


def test_the_first_bytes_clock_ends_with_the_first_byte() -> None:
    taken = take(Scripted(b"d", 3 * SHORT, b"one\n"), clocks=replace(LONG, first_byte_s=SHORT))
    assert taken.end.failure is None


def test_silence_after_the_first_byte_is_a_stall_and_keeps_the_partial_text() -> None:
    scripted = Scripted(said("half an"), HANG, last_words=(said("answer"),))
    taken = take(scripted, clocks=replace(LONG, stall_s=SHORT))
    assert taken.failure == Failure(FailureKind.TIMEOUT, "was silent for 0.2 s (stall)")
    assert (taken.end.text, taken.end.exit.code) == ("half an\nanswer", -15)


@pytest.mark.parametrize(
    "sign", [said("text"), said("thinking"), said("thinking", "retry"), b"a piece of a long line "]
)
def test_what_an_agent_prints_is_a_sign_of_life(sign: bytes) -> None:
    script = [sign if at % 2 else SHORT / 2 for at in range(10)]
    assert take(Scripted(*script, b"\ndone\n"), clocks=replace(LONG, stall_s=2 * SHORT)).end.failure is None


@pytest.mark.parametrize("sign", [said("retry"), said("note"), Err(said("retry")), Err(b"noise\n"), Err(b"noise")])
def test_retries_notes_and_noise_are_no_life(sign: bytes | Err) -> None:
    script = [sign if at % 2 else SHORT / 4 for at in range(200)]
    taken = take(Scripted(said("text"), *script, said("done")), clocks=replace(LONG, stall_s=SHORT))
    last = "; the last it said: rate limit" if b"retry" in (sign.data if isinstance(sign, Err) else sign) else ""
    assert taken.failure.reason == f"was silent for 0.2 s (stall){last}"
    assert taken.end.exit.seconds == pytest.approx(SHORT, abs=0.02)


@pytest.mark.parametrize(
    ("parser", "retry", "words"),
    [
        (
            GeminiEvents,
            Err(b"Attempt 1 failed with status 429. Retrying with backoff... ApiError: quota\n"),
            "status 429",
        ),
        (GeminiEvents, Err(b"Attempt 2 failed with status 503. Retrying with backoff...\n"), "status 503"),
        (
            CodexEvents,
            b'{"type": "error", "message": "Reconnecting... 2/5 (unexpected status 500 Internal Server Error)"}\n',
            "unexpected status 500 Internal Server Error",
        ),
    ],
)
def test_a_stall_says_why_the_agent_tried_again_last(
    parser: Callable[[], EventParser], retry: bytes | Err, words: str
) -> None:
    init = b'{"type": "init"}\n'
    taken = take(Scripted(init, retry, HANG), parser(), replace(LONG, stall_s=SHORT))
    reason = f"was silent for 0.2 s (stall); the last it said: {words}"
    assert taken.failure == Failure(FailureKind.TIMEOUT, reason)


def test_a_retry_that_was_answered_is_no_reason_for_a_later_stall() -> None:
    taken = take(Scripted(said("retry", "text"), HANG), clocks=replace(LONG, stall_s=SHORT))
    assert taken.failure.reason == "was silent for 0.2 s (stall)"


def test_an_open_tool_call_stops_the_stall_clock() -> None:
    script = (said("tool"), 3 * SHORT, said("result"), said("done"))
    assert take(Scripted(*script), clocks=replace(LONG, stall_s=SHORT)).end.failure is None


def test_a_claude_that_runs_a_tool_may_be_silent() -> None:
    call = (
        b'{"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]}}'
    )
    end = b'{"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}}'
    script = (call + b"\n", 3 * SHORT, end + b"\n" + spoken("claude", "Yes").encode())
    assert take(Scripted(*script), ClaudeEvents(), replace(LONG, stall_s=SHORT)).end.failure is None


@pytest.mark.parametrize(("words", "stalls"), [(("tool", "result"), True), (("tool", "other tool", "result"), False)])
def test_the_stall_clock_goes_on_when_the_last_tool_call_has_ended(words: tuple[str, ...], stalls: bool) -> None:
    taken = take(Scripted(said(*words), 3 * SHORT, said("done")), clocks=replace(LONG, stall_s=SHORT))
    assert (taken.end.failure is not None) == stalls


def test_nothing_stops_the_clock_of_the_whole_turn() -> None:
    script = [said("tool", "busy") if at % 2 else SHORT / 4 for at in range(400)]
    taken = take(Scripted(*script), clocks=replace(LONG, total_s=SHORT))
    assert taken.failure == Failure(FailureKind.TIMEOUT, "was still running after 0.2 s (its timeout)")
    assert taken.end.exit.seconds == pytest.approx(SHORT, abs=0.02)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.5, "0.5 s"), (59, "59 s"), (60, "1 min"), (90, "90 s"), (1800, "30 min"), (7200, "120 min")],
)
def test_clocks_are_told_in_the_unit_people_use(seconds: float, words: str) -> None:
    assert turn.limit_in_words(seconds) == words


def test_output_that_waits_for_a_busy_caller_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that was paused, or Ctrl-Z: what the agent wrote meanwhile is read before it is judged."""
    monkeypatch.setattr(turn, "LATE_S", SHORT)

    def emit(_events: Sequence[AgentEvent]) -> None:
        cast("HurriedLoop", asyncio.get_running_loop()).stall(next(busy, 0))

    lines = [said("more") if at % 2 else SHORT / 2 for at in range(20)]
    busy = iter([3 * SHORT])
    taken = take(Scripted(*lines, said("done")), clocks=replace(LONG, stall_s=2 * SHORT), emit=emit)
    assert taken.end.failure is None


def test_a_long_silence_is_noted_again_and_again() -> None:
    taken = take(Scripted(said("a"), 5 * SHORT, said("done")), clocks=replace(LONG, note_s=SHORT))
    assert {re.sub(r"\d+", "n", note) for note in taken.notes} == {"silent for n s"}
    assert len(taken.notes) == 4
    assert taken.end.failure is None


def test_no_silence_no_note() -> None:
    script = [said("a") if at % 2 else SHORT / 4 for at in range(20)]
    assert take(Scripted(*script, said("done")), clocks=replace(LONG, note_s=2 * SHORT)).notes == []


# --- the end of a turn


def test_an_agent_that_does_not_exit_after_its_result_is_ended() -> None:
    scripted = Scripted(said("the answer", "done"), HANG)
    taken = take(scripted, clocks=replace(LONG, exit_s=SHORT))
    assert taken.failure == Failure(FailureKind.TIMEOUT, "did not exit within 0.2 s after its result")
    assert (taken.end.text, scripted.process.stops) == ("the answer", [False])


def test_an_answer_that_is_complete_by_every_sign_counts_though_its_agent_had_to_be_ended() -> None:
    taken = take(Scripted(said("the answer", "done"), HANG, stopped_code=0), clocks=replace(LONG, exit_s=SHORT))
    assert (taken.end.text, taken.end.failure) == ("the answer", None)
    assert taken.notes == ["did not exit within 0.2 s after its result, but had answered in full"]


def test_a_failure_in_the_agents_own_words_outlives_its_hanging() -> None:
    own = Failure(FailureKind.RATE_LIMIT, "reached its quota")
    taken = take(Scripted(said("failed"), HANG), WordParser(own), replace(LONG, exit_s=SHORT))
    assert taken.failure == own


def test_who_goes_on_after_a_result_is_not_hanging() -> None:
    script = [said("thinking") if at % 2 else SHORT / 2 for at in range(10)]
    taken = take(Scripted(said("done"), *script, said("done")), clocks=replace(LONG, exit_s=2 * SHORT))
    assert taken.end.failure is None


# --- stopping


def test_the_first_interrupt_is_soft_and_its_reason_rules_over_dying_words() -> None:
    scripted = Scripted(said("half"), HANG, last_words=(said("failed"), Err(b"killed by user\n")))
    taken = take(scripted, stop_at=(SHORT,))
    assert taken.failure == Failure(FailureKind.INTERRUPTED, "was interrupted")
    assert (taken.end.text, scripted.process.stops) == ("half", [False])


def test_the_second_interrupt_is_hard() -> None:
    scripted = Scripted(said("half"), HANG, deaf=True)
    taken = take(scripted, stop_at=(SHORT, 2 * SHORT))
    assert (taken.failure.kind, taken.end.exit.code) == (FailureKind.INTERRUPTED, -9)
    assert scripted.process.stops == [False, True]


def test_a_turn_that_is_not_needed_any_more_was_stopped_and_not_interrupted() -> None:
    why = Failure(FailureKind.STOPPED, "was stopped")
    taken = take(Scripted(said("half"), HANG), stop_at=(SHORT,), why=why)
    assert (taken.failure, taken.end.text, taken.end.interrupted) == (why, "half", True)


def test_the_first_reason_to_stop_a_turn_stands() -> None:
    stopper, why = Stopper(), Failure(FailureKind.STOPPED, "was stopped")
    with stopper.within() as one, stopper.within() as other:
        one.request(why)
        stopper.request()
    assert (one.why, other.why, stopper.why) == (why, INTERRUPTED, INTERRUPTED)
    assert (one.asked, other.asked) == (2, 1)


def test_who_is_interrupted_twice_at_once_is_killed_at_once() -> None:
    scripted = Scripted(HANG, deaf=True)
    take(scripted, stop_at=(0, 0))
    assert scripted.process.stops == [True]


def test_an_interrupt_after_a_timeout_only_hurries() -> None:
    scripted = Scripted(said("half"), HANG, deaf=True)
    taken = take(scripted, clocks=replace(LONG, stall_s=SHORT), stop_at=(3 * SHORT, 4 * SHORT))
    assert taken.failure.reason == "was silent for 0.2 s (stall)"
    assert scripted.process.stops == [False, False, True]


def test_a_complete_answer_that_crosses_the_interrupt_counts() -> None:
    scripted = Scripted(said("answer"), HANG, last_words=(said("done"),), stopped_code=0)
    taken = take(scripted, stop_at=(SHORT,))
    assert (taken.end.text, taken.end.failure) == ("answer", None)
    assert taken.notes == ["was interrupted, but had answered in full"]


def test_a_refused_login_is_not_waited_for() -> None:
    scripted = Scripted(said("login", "login"), HANG)
    taken = take(scripted)
    assert taken.failure == Failure(FailureKind.LOGIN, "login was refused")
    assert set(scripted.process.stops) == {False}


def test_a_refused_login_is_told_in_the_agents_own_words_if_it_has_some() -> None:
    own = Failure(FailureKind.LOGIN, "is not logged in", "run `claude`")
    assert take(Scripted(said("login"), HANG), WordParser(own)).failure == own


def test_other_retries_are_waited_for() -> None:
    scripted = Scripted(said("retry"), SHORT, said("answer", "done"))
    assert (take(scripted).end.failure, scripted.process.stops) == (None, [])


def test_too_much_output_is_a_failure_that_names_the_limit() -> None:
    taken = take(Scripted(said("y", "y"), over_limit=5 * 1024**2, code=-9))
    assert taken.failure == Failure(FailureKind.AGENT, "wrote more than 5 MiB and was stopped")
    assert taken.end.text == "y\ny"


# --- callers that fail


class Spilled(Exception):
    """What a caller's own code may raise."""


@pytest.mark.parametrize("at", ["a line", "a note"])
def test_what_the_caller_raises_ends_the_agent_and_comes_out(at: str) -> None:
    def emit(events: Sequence[AgentEvent]) -> None:
        if at == "a line" or isinstance(events[0], Note):
            raise Spilled(at)

    scripted = Scripted(said("a"), HANG, last_words=(said("b"),), deaf=True)
    with pytest.raises(Spilled, match=at):
        take(scripted, clocks=replace(LONG, note_s=SHORT), emit=emit)
    assert (scripted.process.stops, scripted.process.closed) == ([True], True)


def test_whatever_breaks_inside_a_turn_its_process_is_closed_first() -> None:
    class Broken(WordParser):
        def feed(self, *lines: bytes) -> Iterable[AgentEvent]:
            raise Spilled(lines)

    scripted = Scripted(said("a"), HANG)

    async def main() -> None:
        with pytest.raises(Spilled):
            await run_turn(scripted(), Broken(), LONG, Stopper(), lambda _event: None)
        assert scripted.process.closed

    asyncio.run(main())


def test_an_agent_is_killed_when_its_watch_breaks_and_the_reason_comes_out() -> None:
    class Broken(ScriptedProcess):
        def end_input(self) -> bool:
            raise Spilled("input")

    made: list[ScriptedProcess] = []

    def make() -> ScriptedProcess:
        made.append(Broken(said("a"), HANG, deaf=True))
        return made[-1]

    parser = WordParser()
    parser.answered = True
    with pytest.raises(Spilled, match="input"):
        take(make, parser)
    assert (made[0].stops, made[0].closed) == ([True], True)


def test_a_turn_sleeps_while_no_clock_can_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    times, wait = [], HurriedSelector.select

    def select(self: HurriedSelector, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        times.append(self.now)
        return wait(self, timeout)

    monkeypatch.setattr(HurriedSelector, "select", select)
    taken = take(Scripted(said("a"), 20.0, said("b"), 30.0, said("hello", "done")))
    assert (taken.end.failure, taken.end.exit.seconds) == (None, 50)
    assert len(times) < 50  # a look each 0.01 s would make it 5,000


def test_a_cancelled_turn_closes_its_process() -> None:
    scripted = Scripted(said("a"), HANG)

    async def main() -> None:
        task = asyncio.ensure_future(run_turn(scripted(), WordParser(), LONG, Stopper(), lambda _event: None))
        await asyncio.sleep(SHORT)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert scripted.process.closed

    asyncio.run(main())


# --- real processes


@dataclass(frozen=True)
class Real:
    """Starts fake agents as real processes, each turn in a folder of its own."""

    folder: Path
    pids: Pids

    def __call__(self, *steps: str, max_output: int = 2**30) -> Callable[[], Running]:
        what = Launch(
            argv=agent(*steps),
            cwd=self.folder,
            env=marked({"AGENT_PIDS": str(self.pids.file)}),
            stdin=b"the prompt",
            folder=self.folder / "turn",
            stop=StopRule(grace_s=5),
            max_output=max_output,
        )
        return lambda: launch(what)


@pytest.fixture
def real(tmp_path: Path, pids: Pids) -> Real:
    return Real(tmp_path, pids)


@pytest.mark.parametrize(
    ("like", "parser"), [("claude-like", ClaudeEvents), ("codex-like", CodexEvents), ("gemini-like", GeminiEvents)]
)
def test_whole_turns_of_each_kind_of_agent(real: Real, like: str, parser: Callable[[], EventParser]) -> None:
    taken = take(real(like, "Grüße an {prompt} [NEXT: sarah]"), parser())
    assert (taken.end.text, taken.end.failure) == ("Grüße an the prompt [NEXT: sarah]", None)
    assert taken.end.usage is not None
    assert taken.end.vendor_session is not None
    streams = any(isinstance(event, TextDelta) for event in taken.events)
    assert streams == (like != "codex-like")


def test_a_program_that_dies_politely_has_not_answered(real: Real) -> None:
    steps = ("reply", "half an answer", "+", "obey", "0", "+", "hang")
    taken = take(real(*steps), PipeOutput(), stop_on="ready\n")
    assert taken.failure == Failure(FailureKind.INTERRUPTED, "was interrupted")
    assert taken.end.exit.code == 0
    assert taken.end.text == "half an answer\nready\ncaught SIGTERM"


def test_a_claude_whose_login_is_refused_is_told_to_log_in(real: Real) -> None:
    taken = take(real("claude-init", "+", "claude-retry", "401", "+", "hang"), ClaudeEvents())
    assert (taken.failure.kind, taken.failure.hint) == (FailureKind.LOGIN, "claude auth login")


def ended(process: ChildProcess) -> bool:
    process.poll()
    return process.exit is not None


@pytest.mark.parametrize("by_signal", [False, True], ids=["thread", "signal"])
def test_a_stop_from_a_thread_or_a_signal_is_heard_at_once(real: Real, by_signal: bool) -> None:
    process, stopper = real("say", "Hi", "+", "hang")(), Stopper()

    async def main() -> TurnEnd:
        if by_signal:
            signal.setitimer(signal.ITIMER_REAL, SHORT)
        else:
            threading.Timer(SHORT, stopper.request).start()
        return await asyncio.wait_for(run_turn(process, PipeOutput(), LONG, stopper, lambda _: None), PATIENCE_S / 2)

    before = signal.signal(signal.SIGALRM, lambda *_: stopper.request())
    try:
        end = asyncio.run(main())
    finally:
        signal.signal(signal.SIGALRM, before)
    assert (end.text, end.interrupted) == ("Hi", True)


@pytest.mark.parametrize("code", [0, 3])
def test_who_has_ended_by_itself_is_judged_by_that_while_its_output_is_told(real: Real, code: int) -> None:
    """A terminal may take minutes for it. Ctrl-C stores the reply, and does not throw it away."""
    process = real("again", "All of it. ", "2", "+", "exit-with", str(code))()
    assert isinstance(process, ChildProcess)
    stopper, told = Stopper(), 0

    def emit(events: Sequence[AgentEvent]) -> None:
        nonlocal told
        told += sum(len(event.text) for event in events if isinstance(event, TextDelta))
        stopper.asked = stopper.asked or int(eventually(lambda: ended(process)))

    end = asyncio.run(run_turn(process, PipeOutput(), LONG, stopper, emit))
    assert (end.exit.code, end.interrupted, stopper.asked) == (code, False, 1)
    assert (end.failure and end.failure.kind) == (FailureKind.AGENT if code else None)
    assert told > 1_900_000
    assert end.text.count("All of it. ") * len("All of it. ") == told


def test_an_endless_writer_can_be_interrupted(real: Real) -> None:
    taken = take(real("endless", max_output=2**40), PipeOutput(), stop_on="y")
    assert taken.failure.kind is FailureKind.INTERRUPTED


def test_what_the_caller_raises_leaves_no_real_process(real: Real, pids: Pids) -> None:
    def emit(_events: Sequence[AgentEvent]) -> None:
        raise Spilled

    before = children()
    with pytest.raises(Spilled):
        take(real("tool", "+", "reply", "x", "+", "hang"), PipeOutput(), emit=emit)
    assert pids.alive() == []
    assert eventually(lambda: children() <= before)
