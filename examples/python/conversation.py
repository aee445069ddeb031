"""Runs a conversation from Python. The agents are this file, started again with the word `agent`.

python conversation.py
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import closing
from pathlib import Path

from teamchat import (
    AgentSpec,
    ConversationCoordinator,
    Database,
    Member,
    Message,
    Run,
    Stopper,
    Team,
    create_session,
    errors,
    manager_of,
    session_lock,
)


def agent() -> None:
    """Reads a prompt and writes a reply. The writer hands over to the critic."""
    prompt = sys.stdin.read()
    if "You are writer" in prompt:
        print("A haiku has three lines.\n[NEXT: critic]")
    else:
        print("True, and seventeen syllables.")


def make_team(folder: Path) -> Team:
    """A person and two members whose agent reads its prompt on standard input."""
    echo = AgentSpec("echo", (sys.executable, __file__, "agent"))
    members = (
        Member("kai", "human", folder),
        Member("writer", "ai", folder, agent="echo"),
        Member("critic", "ai", folder, agent="echo"),
    )
    return Team("poets", members, folder, agents={"echo": echo})


async def converse(folder: Path) -> None:
    team = make_team(folder)
    with closing(Database(folder / "conversation.db")) as db:
        session = create_session(db, team.name, "Explain the haiku")
        manager = manager_of(team, db, session.id)
        with session_lock(folder / "session.lock", "conversation.py"):
            run = Run(
                team,
                db,
                session.id,
                folder=folder / "turns",
                emit=lambda _event: None,  # every event as it happens: replies, warnings, receipts
                stopper=Stopper(),
                manager=manager,
            )
            coordinator = ConversationCoordinator(run)
            coordinator.recover()
            try:
                conclusion = await coordinator.run_input(Message(text="What is a haiku?", to="writer"))
            finally:
                await coordinator.close()
        for message in manager.get_messages():
            print(f"{message.speaker.role_name}: {message.content.splitlines()[0]}")
    print(f"{conclusion.code.name} after {conclusion.turns} turns")


if __name__ == "__main__":
    if sys.argv[1:] == ["agent"]:
        agent()
    else:
        try:
            asyncio.run(converse(Path.cwd()))
        except errors.TeamchatError as error:
            sys.exit(f"{error} (exit code {error.code})")
