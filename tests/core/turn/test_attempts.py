"""An answer for one route: retries, fallbacks, cool-downs, stops, and a receipt for each attempt."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.context.conversation_view import manager_of
from teamchat.core.context.layers.collector import framework_only
from teamchat.core.engine.events import Action, Event, Paused, PauseKind, Spent, TurnBegan
from teamchat.core.engine.state import Route
from teamchat.core.errors import AgentMissing, ExitCode, PromptTooLarge, StoreError
from teamchat.core.messages import NewMessage, Routing, Speaker
from teamchat.core.store.turns import partial_of, turns_of
from teamchat.core.turn import attempts as answering
from teamchat.core.turn.attempts import Answer, Attempts, NoAnswer
from teamchat.core.turn.ending import close_failed, spent
from teamchat.core.turn.machine import Cooldowns, ReadyTurn
from teamchat.core.turn.run import Run, Tally
from teamchat.core.turn.run_events import ConversationEvent, TriesAgain, TurnFinished, TurnStarted, Warned
from teamchat.runners.agent_events import FailureKind, Usage
from teamchat.runners.child.running import Launch
from tests.core.fake_conversation import Fails, Hangs, Running, Stage, team_of
from tests.core.fake_machine import FakeMachine
from tests.fakes.scripted import begun_request, spoken

ROUTE = Route("msg-1", "kailai", "msg-1", 1, "max")


def broke(message: str) -> Fails:
    """A turn of a Codex that says why it failed."""
    return Fails(json.dumps({"type": "turn.failed", "error": {"message": message}}) + "\n")


RATE_LIMIT = broke("exceeded retry limit, last status: 429 Too Many Requests")
OVERLOADED = broke("stream disconnected before completion")
LOGIN = broke("unexpected status 401 Unauthorized")
TOO_LARGE = broke("your input exceeds the context window of this model")
OTHER = broke("the model said no")


def asks_again(status: int, times: int) -> Hangs:
    """A Claude that tries its model again and again, and so would go on for minutes."""
    line = {"type": "system", "subtype": "api_retry", "error_status": status, "error": "try again"}
    return Hangs("".join(json.dumps({**line, "attempt": number}) + "\n" for number in range(1, times + 1)))


class FakeRun(Run):
    """A run whose engine only takes notes, and pauses when it is told to."""

    noted: list[Event]
    paused: Paused | None

    def decide(self, event: Event) -> tuple[Action, ...]:
        self.noted.append(event)
        return ()

    def guard(self) -> Paused | None:
        return self.paused

    def budget(self) -> float:
        return 1.5


@dataclass
class Scene(Stage):
    """A `Stage` of one answer. `says` has a reply for each launch; `noted` is what the engine was told."""

    missing: tuple[str, ...] = ()
    paused: Paused | None = None
    noted: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.manager = manager_of(self.team, self.db, self.session)
        self.manager.add_message(NewMessage("Hi", Speaker("kailai", "kailai", type="human"), Routing()))
        self.tally = Tally()
        self.cooldowns: Cooldowns | None = Cooldowns(self.folder / "cooldowns.json")

    def attempts(self) -> Attempts:
        run = FakeRun(
            self.team,
            self.db,
            self.session,
            folder=self.folder / "turns",
            stopper=self.stopper,
            emit=self._emit,
            machine=FakeMachine(self._launch, self._check, moment=self.moment),
            manager=self.manager,
            cooldowns=self.cooldowns,
        )
        run.collector, run.tally, run.noted, run.paused = framework_only(self.team), self.tally, self.noted, self.paused
        return Attempts(run)

    def answer(self, route: Route = ROUTE) -> Answer | NoAnswer:
        return asyncio.run(self.attempts().answer(route))

    def _check(self, turn: ReadyTurn) -> None:
        if turn.member.name in self.missing:
            raise AgentMissing(f"{turn.member.name}'s program is not installed", "install it")
        self.check(turn)

    def _launch(self, launch: Launch) -> Running:
        name = launch.identity.member
        reply = self.says[name][self.spoke.count(name)]
        self.keep(launch)
        protocol = self.team.agent_of(self.team.member(name)).protocol
        launch.prepare()
        return Running(launch, spoken(protocol, reply) if isinstance(reply, str) else reply.partial, reply)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """`max`, `sarah` and `carol`, each of a vendor of its own; no time passes between tries."""
    monkeypatch.setattr(answering, "BACKOFF_S", 0.0)
    return Scene(tmp_path, team_of(tmp_path, {"max": "codex", "sarah": "codex", "carol": "codex"}))


def text_of(result: Answer | NoAnswer) -> str:
    assert isinstance(result, Answer), result
    assert result.finished.outcome.failure is None
    return result.finished.text


def kind_of(result: Answer | NoAnswer) -> FailureKind:
    assert isinstance(result, Answer), result
    assert result.finished.outcome.failure is not None
    return result.finished.outcome.failure.kind


# --- one try


def test_an_answer_is_handed_over_with_its_turn_still_open(scene: Scene) -> None:
    scene.says = {"max": ["Hello"]}
    result = scene.answer()
    assert text_of(result) == "Hello"
    assert isinstance(result, Answer)
    assert (result.member.name, result.route) == ("max", replace(ROUTE, attempt=1, as_of="msg-1"))
    assert [(turn.id, turn.status) for turn in scene.turns] == [(result.turn.id, "running")]
    assert [type(event) for event in scene.noted] == [TurnBegan]
    assert not any(isinstance(event, TurnFinished) for event in scene.events)


@pytest.mark.parametrize(("wait_s", "times"), [(0.0, 1), (0.02, 2)])
def test_what_was_checked_is_checked_again_after_a_wait(scene: Scene, wait_s: float, times: int) -> None:
    checked: list[str] = []
    scene.check = lambda turn: checked.append(turn.member.name)
    scene.moment = lambda _: time.time() + wait_s if wait_s else 0.0
    scene.says = {"max": ["Hello"]}
    assert text_of(scene.answer()) == "Hello"
    assert checked == ["max"] * times


def test_what_can_be_known_before_starts_nothing_and_leaves_no_receipt(scene: Scene) -> None:
    scene.missing = ("max",)
    result = scene.answer()
    assert isinstance(result, NoAnswer)
    assert (result.error.code, result.route) == (ExitCode.AGENT_UNAVAILABLE, ROUTE)
    assert (scene.launched, scene.turns, scene.noted, scene.events) == ([], [], [], [])


def test_nothing_is_begun_once_a_stop_was_asked_for(scene: Scene) -> None:
    scene.stopper.request()
    result = scene.answer()
    assert isinstance(result, NoAnswer)
    assert result.error.code is ExitCode.INTERRUPTED
    assert scene.turns == []


def test_nothing_is_begun_where_the_stop_comes_while_the_prompt_is_built(scene: Scene) -> None:
    scene.check = lambda _turn: scene.stopper.request()
    result = scene.answer()
    assert isinstance(result, NoAnswer)
    assert result.error.code is ExitCode.INTERRUPTED
    assert (scene.launched, scene.turns, scene.noted) == ([], [], [])


# --- tries again


@pytest.mark.parametrize("failure", [RATE_LIMIT, OVERLOADED], ids=["rate limit", "overloaded"])
def test_what_may_pass_by_itself_is_tried_again(scene: Scene, failure: Fails) -> None:
    scene.member("max", retries=2)
    scene.says = {"max": [failure, failure, "There."]}
    result = scene.answer()
    assert text_of(result) == "There."
    assert result.route.attempt == 3
    assert [warning.rpartition("; ")[2] for warning in scene.warnings] == ["tries again in 0 s"] * 2
    retries = [event.again for event in scene.events if isinstance(event, Warned)]
    assert retries == [TriesAgain(1, 2, 0.0), TriesAgain(2, 2, 0.0)]


@pytest.mark.parametrize(
    ("failure", "kind"), [(LOGIN, FailureKind.LOGIN), (TOO_LARGE, FailureKind.TOO_LARGE), (OTHER, FailureKind.AGENT)]
)
def test_what_does_not_pass_by_itself_is_not(scene: Scene, failure: Fails, kind: FailureKind) -> None:
    scene.member("max", retries=5)
    scene.says = {"max": [failure]}
    assert kind_of(scene.answer()) is kind
    assert (scene.spoke, scene.warnings) == (["max"], [])


def test_a_program_that_is_missing_is_not_tried_again(scene: Scene) -> None:
    scene.member("max", retries=5)
    scene.missing = ("max",)
    assert isinstance(scene.answer(), NoAnswer)
    assert scene.warnings == []


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_it_is_tried_as_often_as_the_team_file_says(scene: Scene, retries: int) -> None:
    scene.member("max", retries=retries)
    scene.says = {"max": [OVERLOADED] * 9}
    assert kind_of(scene.answer()) is FailureKind.OVERLOADED
    assert len(scene.spoke) == retries + 1


def test_every_attempt_answers_the_same_message_and_has_a_receipt_of_its_own(scene: Scene) -> None:
    scene.member("max", retries=1)
    scene.says = {"max": [OVERLOADED, "There."]}

    def meanwhile(event: ConversationEvent) -> None:
        if isinstance(event, TurnFinished):
            scene.manager.add_message(NewMessage("Later", Speaker("bob", "bob", type="human"), Routing()))

    scene.hear = meanwhile
    result = scene.answer()
    first, second = scene.turns
    assert (first.number, first.status, first.setup.attempt) == (1, "failed", 1)
    assert (second.number, second.status, second.setup.attempt) == (2, "running", 2)
    assert first.setup.answers == second.setup.answers == "msg-1"
    assert first.outcome is not None
    assert first.outcome.failure is not None
    assert isinstance(result, Answer)
    assert result.turn.id == second.id
    told = [(type(event), event.turn.number) for event in scene.events if isinstance(event, TurnStarted | TurnFinished)]
    assert told == [(TurnStarted, 1), (TurnFinished, 1), (TurnStarted, 2)]


def test_a_failed_attempt_is_paid_for_and_its_words_are_kept_as_partial_text(scene: Scene) -> None:
    said = json.dumps({"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": "Half an"}})
    scene.member("max", retries=1)
    scene.says = {"max": [Fails(f"{said}\n{OVERLOADED.partial}"), "There."]}
    assert text_of(scene.answer()) == "There."
    assert partial_of(scene.db, scene.turns[0]) == "Half an"
    assert [type(event) for event in scene.noted] == [TurnBegan, Spent, TurnBegan]
    assert scene.tally.turns == 1  # the open one is added when it is ended


def test_pauses_double_up_to_a_minute_and_are_not_all_the_same(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "BACKOFF_S", 2.0)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(scene.stopper, "sleep", sleep)
    scene.member("max", retries=8)
    scene.says = {"max": [RATE_LIMIT] * 9}
    scene.answer()
    assert len(slept) == 8
    for pause, wanted in zip(slept, (2, 4, 8, 16, 32, 60, 60, 60), strict=True):
        assert 0.75 * wanted <= pause <= 1.25 * wanted
    assert len({pause / wanted for pause, wanted in zip(slept, (2, 4, 8, 16, 32, 60, 60, 60), strict=True)}) > 1


def test_a_stop_ends_the_pause_between_two_tries(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "BACKOFF_S", 60.0)
    scene.member("max", retries=3, fallback=("sarah",))
    scene.says = {"max": [OVERLOADED]}
    scene.hear = lambda event: scene.stopper.request() if isinstance(event, Warned) else None
    result = asyncio.run(asyncio.wait_for(scene.attempts().answer(ROUTE), 20))
    assert isinstance(result, NoAnswer)
    assert result.error.code is ExitCode.INTERRUPTED
    assert result.route.attempt == 1
    assert scene.spoke == ["max"]
    assert [turn.status for turn in scene.turns] == ["failed"]


def test_a_turn_that_is_stopped_is_neither_tried_again_nor_replaced(scene: Scene) -> None:
    scene.member("max", retries=3, fallback=("sarah",))
    scene.says = {"max": [Hangs(RATE_LIMIT.partial, scene.stopper.request)]}
    result = scene.answer()
    assert isinstance(result, Answer)
    assert result.finished.outcome.failure is not None
    assert (scene.spoke, scene.warnings) == (["max"], [])


# --- fallbacks


@pytest.mark.parametrize("failure", [RATE_LIMIT, OVERLOADED, LOGIN], ids=["rate limit", "overloaded", "login"])
def test_another_answers_for_one_that_can_not(scene: Scene, failure: Fails) -> None:
    scene.member("max", fallback=("sarah", "carol"))
    scene.says = {"max": [failure], "sarah": ["Here."]}
    result = scene.answer()
    assert text_of(result) == "Here."
    assert isinstance(result, Answer)
    assert (result.member.name, result.route.target, result.route.attempt) == ("sarah", "max", 2)
    assert scene.spoke == ["max", "sarah"]
    (warning,) = scene.warnings
    assert warning.startswith("max ")
    assert warning.endswith("; sarah answers as its fallback")


def test_another_answers_for_one_whose_program_is_missing(scene: Scene) -> None:
    scene.member("max", fallback=("sarah",))
    scene.missing = ("max",)
    scene.says = {"sarah": ["Here."]}
    assert text_of(scene.answer()) == "Here."
    assert scene.warnings == ["max's program is not installed; sarah answers as its fallback"]
    assert [turn.member for turn in scene.turns] == ["sarah"]


@pytest.mark.parametrize("failure", [TOO_LARGE, OTHER], ids=["too large", "other"])
def test_nobody_answers_for_one_that_failed_otherwise(scene: Scene, failure: Fails) -> None:
    scene.member("max", fallback=("sarah",))
    scene.says = {"max": [failure]}
    scene.answer()
    assert (scene.spoke, scene.warnings) == (["max"], [])


def test_a_prompt_that_is_too_large_for_one_is_not_given_to_another(scene: Scene) -> None:
    scene.member("max", fallback=("sarah",), system_instruction="x" * 2_000_000)
    result = scene.answer()
    assert isinstance(result, NoAnswer)
    assert isinstance(result.error, PromptTooLarge)
    assert scene.spoke == []


def test_they_are_asked_in_their_order_and_the_last_ones_failure_is_the_answer(scene: Scene) -> None:
    scene.member("max", retries=1, fallback=("carol", "sarah"))
    scene.says = {"max": [OVERLOADED] * 2, "carol": [LOGIN], "sarah": [RATE_LIMIT]}
    result = scene.answer()
    assert kind_of(result) is FailureKind.RATE_LIMIT
    assert isinstance(result, Answer)
    assert result.member.name == "sarah"
    assert scene.spoke == ["max", "max", "carol", "sarah"]
    assert [turn.status for turn in scene.turns] == ["failed", "failed", "failed", "running"]
    assert [turn.setup.attempt for turn in scene.turns] == [1, 2, 3, 4]


def test_a_fallback_has_its_own_retries_and_not_the_others(scene: Scene) -> None:
    scene.member("max", fallback=("sarah",))
    scene.member("sarah", retries=1)
    scene.says = {"max": [OVERLOADED], "sarah": [OVERLOADED, "Here."]}
    assert text_of(scene.answer()) == "Here."
    assert scene.spoke == ["max", "sarah", "sarah"]


def test_a_fallbacks_own_fallbacks_are_not_asked(scene: Scene) -> None:
    scene.member("max", fallback=("sarah",))
    scene.member("sarah", fallback=("carol",))
    scene.says = {"max": [LOGIN], "sarah": [LOGIN]}
    assert kind_of(scene.answer()) is FailureKind.LOGIN
    assert scene.spoke == ["max", "sarah"]


def test_a_fallback_is_told_and_its_receipt_says_why(scene: Scene) -> None:
    scene.member("max", fallback=("sarah",))
    scene.says = {"max": [LOGIN], "sarah": ["Here."]}
    scene.answer()
    first, second = (launch.stdin.decode() for launch in scene.launched)
    assert "fallback" not in first
    assert "You are answering msg-1, from kailai, below. You are the fallback for max, who cannot answer." in second
    assert [turn.setup.why for turn in scene.turns] == [
        "kailai asked for max in msg-1",
        "kailai asked for max in msg-1; sarah answers as its fallback",
    ]


def test_later_prompts_and_the_message_say_who_spoke_for_whom(tmp_path: Path) -> None:
    stage = Stage(tmp_path, team_of(tmp_path, {"max": "codex", "sarah": "codex", "carol": "plain"}))
    stage.member("max", fallback=("sarah",))
    stage.says = {"max": [LOGIN], "sarah": ["Here. [NEXT: carol]"], "carol": ["[NEXT: max] Thanks."]}
    stage.send("[NEXT: max] Hi")
    reply = stage.log[1]
    assert (reply.speaker.role_name, reply.stands_for) == ("sarah", "max")
    to_carol = stage.prompts[stage.spoke.index("carol")]
    assert "You are answering msg-2, from sarah (for max), below." in to_carol
    assert "- sarah (for max) -> carol: Here." in stage.prompts[-1]


# --- cool-downs


def test_a_rate_limit_lets_the_agent_cool_down_for_the_next_run_too(scene: Scene) -> None:
    scene.member("max", fallback=("sarah",))
    scene.says = {"max": [RATE_LIMIT], "sarah": ["Here.", "Here again."]}
    scene.answer()
    scene.cooldowns = Cooldowns(scene.folder / "cooldowns.json")  # another process
    scene.events.clear()
    assert text_of(scene.answer()) == "Here again."
    assert scene.spoke == ["max", "sarah", "sarah"]
    assert scene.warnings == ["max's agent cools down after a rate limit; sarah answers as its fallback"]


@pytest.mark.parametrize("failure", [OVERLOADED, LOGIN], ids=["overloaded", "login"])
def test_nothing_else_does(scene: Scene, failure: Fails) -> None:
    scene.member("max", fallback=("sarah",))
    scene.says = {"max": [failure, "Me."], "sarah": ["Here."]}
    scene.answer()
    assert text_of(scene.answer()) == "Me."


def test_an_agent_that_cools_down_is_asked_all_the_same_when_nobody_else_is_there(scene: Scene) -> None:
    scene.says = {"max": [RATE_LIMIT, "Me."]}
    scene.answer()
    assert text_of(scene.answer()) == "Me."
    assert scene.warnings == []


def test_a_fallback_with_the_agent_that_cools_down_comes_last(scene: Scene) -> None:
    """The rate limit of one key is that of all who use it."""
    scene.member("max", fallback=("carol", "sarah"))
    scene.member("carol", agent="max-agent")
    scene.says = {"max": [RATE_LIMIT], "sarah": ["Here."]}
    assert text_of(scene.answer()) == "Here."
    assert scene.spoke == ["max", "sarah"]


def test_one_whose_agent_cools_down_is_asked_when_the_others_can_not_answer(scene: Scene) -> None:
    assert scene.cooldowns
    scene.cooldowns.start("max-agent")
    scene.member("max", fallback=("sarah",))
    scene.missing = ("sarah",)
    scene.says = {"max": ["Me."]}
    assert text_of(scene.answer()) == "Me."
    assert scene.warnings == [
        "max's agent cools down after a rate limit; sarah answers as its fallback",
        "sarah's program is not installed; max is asked anyway",
    ]


def test_where_nothing_is_remembered_everybody_is_asked(scene: Scene) -> None:
    scene.cooldowns = None
    scene.member("max", fallback=("sarah",))
    scene.says = {"max": [RATE_LIMIT, RATE_LIMIT], "sarah": ["One.", "Two."]}
    scene.answer()
    scene.answer()
    assert scene.spoke == ["max", "sarah"] * 2


# --- a CLI that asks its vendor again by itself


@pytest.fixture
def claudes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(answering, "BACKOFF_S", 0.0)
    scene = Scene(tmp_path, team_of(tmp_path, {"max": "claude", "sarah": "codex"}))
    scene.member("max", fallback=("sarah",))
    return scene


def test_a_turn_that_broke_off_has_used_what_its_cli_had_told_by_then(claudes: Scene) -> None:
    claudes.says = {"max": [Fails(begun_request(), code=-2), "There."]}
    claudes.member("max", fallback=())
    answer = claudes.answer()
    assert isinstance(answer, Answer)
    assert answer.finished.outcome.usage == Usage(11, 5, 1)
    assert spent(0.0, answer.finished.outcome.usage) == Spent(0.0, 12, 0.0)


@pytest.mark.parametrize(("status", "times"), [(429, 1), (529, 3)])
def test_it_is_ended_early_when_somebody_can_answer_in_its_place(claudes: Scene, status: int, times: int) -> None:
    claudes.says = {"max": [asks_again(status, times)], "sarah": ["Here."]}
    assert text_of(claudes.answer()) == "Here."
    first = claudes.turns[0]
    assert first.outcome is not None
    assert first.outcome.failure is not None
    assert first.outcome.failure.kind in answering.PATIENCE


@pytest.mark.parametrize(("status", "times"), [(429, 5), (529, 2)])
def test_it_is_waited_for_while_nobody_can_or_it_is_not_yet_often(claudes: Scene, status: int, times: int) -> None:
    if status == 429:
        claudes.member("max", fallback=())
    claudes.says = {"max": [Fails(asks_again(status, times).partial + spoken("claude", "There."), code=0)]}
    assert text_of(claudes.answer()) == "There."
    assert claudes.spoke == ["max"]


def test_it_is_waited_for_while_those_who_could_answer_cool_down(claudes: Scene) -> None:
    assert claudes.cooldowns
    claudes.cooldowns.start("sarah-agent")
    claudes.says = {"max": [Fails(asks_again(429, 5).partial + spoken("claude", "There."), code=0)]}
    assert text_of(claudes.answer()) == "There."


# --- the rest


def test_the_budget_is_handed_to_the_cli_of_each_attempt(claudes: Scene) -> None:
    claudes.member("max", retries=1, fallback=())
    claudes.says = {"max": [Fails(asks_again(529, 1).partial), "There."]}
    assert text_of(claudes.answer()) == "There."
    for launch in claudes.launched:
        assert launch.argv[launch.argv.index("--max-budget-usd") + 1] == "1.5000"
    assert len(claudes.launched) == 2


@pytest.mark.parametrize("member", [{"retries": 3, "fallback": ()}, {"retries": 0, "fallback": ("sarah",)}])
@pytest.mark.parametrize(
    ("kind", "code"),
    [(PauseKind.TOKENS, ExitCode.BUDGET), (PauseKind.COST, ExitCode.BUDGET), (PauseKind.TIME, ExitCode.GUARD)],
)
def test_where_a_guard_stands_nothing_is_tried_again_and_no_fallback_is_asked(
    scene: Scene, member: dict[str, object], kind: PauseKind, code: ExitCode
) -> None:
    scene.member("max", **member)
    scene.says = {"max": [Fails(err="Error: 429 too many requests")], "sarah": ["There."]}
    scene.paused = Paused(kind, "so much is spent (limits.so)")
    result = scene.answer()
    assert isinstance(result, NoAnswer)
    assert result.error.code is code
    assert str(result.error).endswith(", and so much is spent (limits.so)")
    assert len(scene.launched) == 1
    assert [turn.status for turn in turns_of(scene.db, scene.session)] == ["failed"]


def test_a_store_that_fails_before_the_start_starts_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise StoreError("the disk is full")

    attempts = scene.attempts()
    monkeypatch.setattr(scene.db, "execute", failing)
    result = asyncio.run(attempts.answer(ROUTE))
    assert isinstance(result, NoAnswer)
    assert result.error.code is ExitCode.STORE
    assert scene.spoke == []


def test_no_attempt_leaves_a_folder_behind(scene: Scene, world: Path) -> None:
    scene.member("max", retries=1, fallback=("sarah",))
    scene.says = {"max": [OVERLOADED] * 2, "sarah": [LOGIN]}
    result = scene.answer()
    assert isinstance(result, Answer)
    assert list((world / "tmp").iterdir()) == [result.scratch], "that of a turn which is not stored yet"
    assert list((scene.folder / "turns").iterdir()) == [result.turn.folder]
    close_failed(scene.attempts().run, result)
    assert list((scene.folder / "turns").iterdir()) == []


def test_the_cost_of_a_group_is_the_same_in_whichever_order_its_turns_end(scene: Scene) -> None:
    scene.says = {"max": ["There."]}
    answer = scene.answer()
    assert isinstance(answer, Answer)
    sums = set()
    for costs in permutations((0.1, 0.2, 0.3)):
        tally = Tally()
        for cost in costs:
            tally.add(answer.turn, replace(answer.finished.outcome, usage=Usage(0, 0, 0, cost)))
        sums.add(tally.usage.cost_usd)
    assert sums == {0.6}
