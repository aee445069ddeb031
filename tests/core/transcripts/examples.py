"""A conversation that has something of everything, and how tests store it in their workspace."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from teamchat.cli.startup.workspace import open_store
from teamchat.core.messages import ConversationMessage, Routing, Speaker
from teamchat.core.store.sessions import Session
from teamchat.core.transcripts.reading import store
from teamchat.core.transcripts.transcript import ChangedFile, MemberTurn, SaidEntry, Transcript, TranscriptStep

BEGAN = 1_795_000_000_000
KAI = Speaker("kai", "kai", type="human")
MAX = Speaker("max", "max", role_title="Architect", type="ai")
TURN = MemberTurn(
    number=2,
    member="max",
    agent="claude",
    access="edit",
    began_ms=BEGAN + 1000,
    status="done",
    model="opus",
    seconds=58.2,
    steps=(
        TranscriptStep(0.5, "said", "I'll read how the options are built."),
        TranscriptStep(1.5, "tool", "notes/cli.py", "Read", "import typer\n"),
        TranscriptStep(2.0, "denied", "git push", "Bash"),
        TranscriptStep(4.0, "tool", "pytest -q", "Bash", "Exit code 1\n1 failed <b>\n", failed=True),
    ),
    files=(ChangedFile("notes/cli.py", "changed", 6, 1), ChangedFile("logo.png", "added")),
    input_tokens=20_000,
    output_tokens=4000,
    cost_usd=0.11,
)
FAILED = MemberTurn(
    number=1,
    member="sarah",
    agent="codex",
    access="read",
    began_ms=BEGAN + 500,
    status="failed",
    failure="the login was refused",
    text="I was about to",
)
ASKED = ConversationMessage("Add `--version`", KAI, Routing(("max",), ("[NEXT: max]",)), BEGAN, id="msg-1")
REPLY = "Added **--version**:\n\n```python\nprint(1)\n```\n\n[NEXT: sarah]"
EXAMPLE = Transcript(
    "s1",
    "crew",
    "Keep it small",
    BEGAN,
    (
        SaidEntry(ASKED, images=("plan.png",)),
        FAILED,
        SaidEntry(ConversationMessage(REPLY, MAX, Routing(("sarah",)), BEGAN + 60_000, id="msg-2"), TURN),
        SaidEntry(ConversationMessage("Never mind", KAI, timestamp=BEGAN + 90_000, id="msg-3"), undone=True),
    ),
)
SHOWN = replace(EXAMPLE, entries=tuple(entry for entry in EXAMPLE.entries if not entry.undone))
"""Without what was undone."""


def conversation(*texts: str) -> Transcript:
    """kai and max say these texts in turn."""
    said = (
        SaidEntry(ConversationMessage(text, (KAI, MAX)[number % 2], timestamp=BEGAN + number, id=f"msg-{number + 1}"))
        for number, text in enumerate(texts)
    )
    return Transcript("s1", "crew", None, BEGAN, tuple(said))


def keep(transcript: Transcript = EXAMPLE) -> Session:
    """Store it as the session s1 of the working folder."""
    with open_store(Path.cwd()) as db:
        return store(db, transcript, transcript.session)
