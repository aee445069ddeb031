"""Puts agent CLIs and people into one conversation.

The names in `__all__` are for Python programs that run a conversation themselves (`docs/howto/python.md`). Each is
imported when it is first used: a command pays for nothing that it does not need.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teamchat.assemblers.formats import CLAUDE, CODEX, GEMINI, OPENCODE, PLAIN_TEXT
    from teamchat.core import errors
    from teamchat.core.context.conversation_view import ContextManager, manager_of
    from teamchat.core.conversation.coordinator import ConversationCoordinator
    from teamchat.core.conversation.inputs import Message, Resume
    from teamchat.core.conversation.processes import process_of
    from teamchat.core.conversation.talk import Reply, Talk, ask, conversation
    from teamchat.core.engine.events import ResumeMode
    from teamchat.core.engine.workflow import ProcessSettings
    from teamchat.core.files.session_lock import session_lock
    from teamchat.core.store.database import Database
    from teamchat.core.store.sessions import create_session
    from teamchat.core.team.find import load
    from teamchat.core.team.team import AgentSpec, Member, Team
    from teamchat.core.turn import run_events as events
    from teamchat.core.turn.run import Run
    from teamchat.runners.child.supervisor import Stopper

_HOME = {
    "AgentSpec": "core.team.team",
    "CLAUDE": "assemblers.formats",
    "CODEX": "assemblers.formats",
    "ContextManager": "core.context.conversation_view",
    "ConversationCoordinator": "core.conversation.coordinator",
    "Database": "core.store.database",
    "GEMINI": "assemblers.formats",
    "Member": "core.team.team",
    "Message": "core.conversation.inputs",
    "OPENCODE": "assemblers.formats",
    "PLAIN_TEXT": "assemblers.formats",
    "ProcessSettings": "core.engine.workflow",
    "Resume": "core.conversation.inputs",
    "Reply": "core.conversation.talk",
    "ResumeMode": "core.engine.events",
    "Run": "core.turn.run",
    "Stopper": "runners.child.supervisor",
    "Talk": "core.conversation.talk",
    "Team": "core.team.team",
    "ask": "core.conversation.talk",
    "conversation": "core.conversation.talk",
    "create_session": "core.store.sessions",
    "errors": "core.errors",
    "events": "core.turn.run_events",
    "load": "core.team.find",
    "manager_of": "core.context.conversation_view",
    "process_of": "core.conversation.processes",
    "session_lock": "core.files.session_lock",
}
"""The module of each name, below this package."""

__all__ = [
    "CLAUDE", "CODEX", "GEMINI", "OPENCODE", "PLAIN_TEXT", "AgentSpec", "ContextManager",
    "ConversationCoordinator", "Database", "Member", "Message", "ProcessSettings", "Reply", "Resume", "ResumeMode",
    "Run", "Stopper", "Talk", "Team", "ask", "conversation", "create_session", "errors", "events", "load", "manager_of",
    "process_of", "session_lock",
]  # fmt: skip


if not TYPE_CHECKING:  # or type checkers take any name for one of these

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module(f"{__name__}.{_HOME[name]}")
        return module if name in ("errors", "events") else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
