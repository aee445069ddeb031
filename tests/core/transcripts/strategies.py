"""Transcripts as a store can hold them."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.messages import ConversationMessage, Routing, Speaker
from teamchat.core.routing.names import fold, valid_name
from teamchat.core.transcripts.json_form import LATEST_MS
from teamchat.core.transcripts.reading import POSING
from teamchat.core.transcripts.transcript import ChangedFile, MemberTurn, SaidEntry, Transcript, TranscriptStep

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
# what a name can have
words = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp", "Zs", "Co", "Cn"], include_characters=" "),
    max_size=20,
)
titles = words.filter(bool)
# what a member can have
names = st.text(
    st.characters(categories=["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Nd"], include_characters="_.-"), max_size=20
).filter(lambda name: valid_name(name) and fold(name) not in POSING)
counts = st.integers(0, 10**15)
seconds = st.floats(0, 10**9)

steps = st.builds(
    TranscriptStep,
    seconds,
    st.sampled_from(["said", "tool", "denied", "question", "retry", "note", "error"]),
    texts,
    words,
    texts,
    st.booleans(),
)
files = st.builds(
    ChangedFile,
    texts,
    st.none() | st.sampled_from(["added", "changed", "deleted", "mode", "type"]),
    st.none() | counts,
    st.none() | counts,
)
turns = st.builds(
    MemberTurn,
    number=counts,
    member=names,
    agent=titles,
    access=st.sampled_from(["read", "edit", "full"]),
    began_ms=counts,
    status=st.sampled_from(["running", "answered", "done", "failed", "interrupted"]),
    model=st.none() | words,
    seconds=st.none() | seconds,
    failure=st.none() | texts,
    text=texts,
    steps=st.lists(steps, max_size=3).map(tuple),
    files=st.lists(files, max_size=3).map(tuple),
    more_files=counts,
    input_tokens=st.none() | counts,
    cached_tokens=st.none() | counts,
    output_tokens=st.none() | counts,
    cost_usd=st.none() | st.floats(0, 10**15),
    undone=st.booleans(),
    host=st.none() | words,
)
speakers = st.builds(
    Speaker, titles, names, role_title=st.none() | words, type=st.sampled_from(["ai", "human", "system"])
)
routings = st.builds(Routing, st.lists(names, max_size=3).map(tuple), st.lists(texts, max_size=3).map(tuple))
messages = st.builds(
    ConversationMessage,
    texts,
    speakers,
    routings,
    st.integers(-(2**63) + 1, 2**63 - 1),
    stands_for=st.none() | names,
    id=names | st.integers(1, 9).map("msg-{}".format),
)


@st.composite
def said(draw: st.DrawFn) -> SaidEntry:
    undone = draw(st.booleans())
    turn = draw(st.none() | turns.map(lambda turn: _marked(turn, undone=undone)))
    return SaidEntry(draw(messages), turn, draw(st.lists(words, max_size=2).map(tuple)), undone)


def _marked(turn: MemberTurn, *, undone: bool) -> MemberTurn:
    return replace(turn, undone=undone)


def _unique(entries: list[SaidEntry | MemberTurn]) -> bool:
    ids = [entry.message.id for entry in entries if isinstance(entry, SaidEntry)]
    return len(ids) == len(set(ids))


transcripts = st.builds(
    Transcript,
    st.just("s1"),
    titles,
    st.none() | texts,
    st.integers(0, LATEST_MS),
    st.lists(said() | turns, max_size=6).filter(_unique).map(tuple),
    st.none() | titles,
)
