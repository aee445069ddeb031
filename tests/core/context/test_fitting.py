"""Messages that a prompt has no room for are not looked through, and it is the same prompt as if they were."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teamchat.assemblers.truncation import TruncationPolicy, byte_length
from teamchat.core.context.build import BuiltPrompt, build_prompt
from teamchat.core.context.context_manager import ContextManager
from teamchat.core.context.history import SLACK, Fitting, Quote
from teamchat.core.engine.state import Route
from teamchat.core.errors import PromptTooLarge
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Speaker
from teamchat.core.team.team import Team
from tests.core.fake_conversation import team_of
from tests.trials import trials

KEY = "sk-ant-api03-" + "k3Y9" * 10
SPEAKERS = [Speaker(name, name, type="human" if name == "kailai" else "ai") for name in ("kailai", "max", "sarah")]
PIECES = [
    "Hi ",
    KEY,
    f" {KEY} ",
    "größer ",
    "水" * 30,
    "x" * 200,
    "word " * 40,
    "https://max:secret@example.com ",
    "\n",
]
messages = st.lists(
    st.builds(
        lambda speaker, pieces: NewMessage(f"{''.join(pieces)}.", speaker, Routing(("sarah",)), timestamp=0),
        st.sampled_from(SPEAKERS),
        st.lists(st.sampled_from(PIECES), min_size=1, max_size=12),
    ),
    min_size=4,
    max_size=20,
)
sizes = st.fixed_dictionaries(
    {
        "context_window_size": st.integers(5, 30),
        "max_bytes": st.integers(1500, 6000),
        "target_bytes": st.none() | st.integers(500, 6000),
        "per_message": st.none() | st.builds(TruncationPolicy, st.integers(20, 600)),
        "fence_key": st.sampled_from([None, "a key"]),
    }
)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return team_of(tmp_path_factory.mktemp("team"), {"max": "claude", "sarah": "codex"})


def built(team: Team, manager: ContextManager, request: str) -> BuiltPrompt | str:
    latest = manager.get_latest_message()
    assert latest is not None
    route = Route(request, "kailai", latest.id, 1, "max")
    try:
        return build_prompt(team, team.member("max"), route, manager, lambda *_: lambda _name: False)
    except PromptTooLarge as error:
        return str(error)


@settings(max_examples=trials(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=messages, sizes=sizes, request=st.integers(0, 19))
def test_a_prompt_is_what_it_would_be_if_every_message_were_looked_through(
    team: Team, said: list[NewMessage], sizes: dict[str, object], request: int
) -> None:
    class Plain(ContextManager):
        def fitting(self, quote: Quote) -> Quote:
            return quote

    prompts = []
    for kind in (ContextManager, Plain):
        manager = kind(**sizes)  # type: ignore[arg-type]
        for message in said:
            manager.add_message(message)
        prompts.append(built(team, manager, f"msg-{request % len(said) + 1}"))
    assert prompts[0] == prompts[1]


def test_what_has_no_room_is_not_looked_through() -> None:
    looked: list[str] = []

    def quote(message: ConversationMessage, text: str) -> str:
        looked.append(message.id)
        return text.upper()

    fitting = Fitting(quote, 1000, 10_000)
    texts = [
        fitting(NewMessage(text, SPEAKERS[2]).stored_as(name), text)
        for name, text in {"a": "x" * 500, "b": "x" * 501, "c": "x" * SLACK, "d": "é" * 500, "e": "é" * 5000}.items()
    ]
    assert looked == ["a", "b", "c", "e"]
    assert texts[:3] == ["X" * 500, "X" * 501, "X" * SLACK]
    assert texts[3] == "*" * 1000
    assert byte_length(texts[4]) == 10_000
