"""Checks of a person's message before anything of it is stored or run."""

from __future__ import annotations

from collections.abc import Sequence

from teamchat.assemblers.sections import closing
from teamchat.assemblers.truncation import byte_length
from teamchat.core.agents import CLIS
from teamchat.core.context.build import BuiltPrompt, build_prompt
from teamchat.core.context.conversation_view import ContextManager
from teamchat.core.context.history import LENGTH
from teamchat.core.conversation.addressing import Addressed, address, address_task
from teamchat.core.conversation.inputs import Message
from teamchat.core.engine.fitting import fitted
from teamchat.core.engine.state import Route, State
from teamchat.core.engine.strategies import strategy_of
from teamchat.core.engine.workflow import Part
from teamchat.core.errors import NoRoom, UsageError
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Speaker
from teamchat.core.routing.markers import quoted_text
from teamchat.core.store.database import Database
from teamchat.core.store.images import Image
from teamchat.core.store.message_log import MemoryLog, next_number
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.routes import load_state
from teamchat.core.store.sessions import Session
from teamchat.core.team.team import Member, Team
from teamchat.core.turn.run import rules_of
from teamchat.runners.untrusted.json import listed


def check_message(
    team: Team,
    db: Database,
    session: Session | None,
    message: Message,
    *,
    cut: bool = False,
    caller: Speaker | None = None,
) -> Addressed | None:
    """Check a message for that session, or for a new one (None). Returns what it asks for; None for a process's task.

    Raises the reason to refuse it: see `address` and `check_room`. `caller` is as for `address`. A message that may be
    `cut` does not have to fit as a whole. Also raises `UsageError` for images to a member whose CLI takes none, and for
    the task of a process what `check_process` and `need_worktrees` do.
    """
    rules = rules_of(team)
    state = fitted(load_state(db, session.id, rules)) if session else State(rules)
    if message.process:
        _check_task(team, db, session, message, state, cut=cut, caller=caller)
        return None
    addressed = address(
        message.text,
        team,
        state,
        speaker=message.speaker,
        to=message.to,
        opens=session is None,
        typed=message.typed_through,
        pasted=message.pasted,
        caller=caller,
    )
    if addressed.wordless:
        return addressed
    stored, task = as_stored(addressed, db, session), addressed.task or (session.task if session else team.task)
    for member in map(team.member, addressed.names):
        check_images(team, member, message.images)
        check_room(team, member, stored, task, cut=cut)
    return addressed


def _check_task(
    team: Team,
    db: Database,
    session: Session | None,
    message: Message,
    state: State,
    *,
    cut: bool = False,
    caller: Speaker | None = None,
) -> None:
    """Raise the reason to refuse the task of a process in that session, or in a new one (None).

    See `check_process`, `address_task`, `need_worktrees` and `need_one_tree`, and for the members that begin
    `check_images` and `check_room`.
    """
    # only `teamchat run` needs them
    from teamchat.core.conversation.processes import check_process, need_one_tree, need_worktrees

    process = message.process
    assert process
    check_process(state, process)
    addressed = address_task(message.text, team, speaker=message.speaker, caller=caller)
    stored, task = as_stored(addressed, db, session), addressed.task or (session.task if session else team.task)
    step = strategy_of(process.kind).step(process.at_work)
    for call in step.calls if step else ():
        member = team.member(call.target)
        check_images(team, member, message.images)
        check_room(team, member, stored, task, cut=cut, part=call.part)
    need_worktrees(team, db.path.parent, session.id if session else None, process)
    need_one_tree(team, db.path.parent, process)


def as_stored(addressed: Addressed, db: Database, session: Session | None) -> ConversationMessage:
    """Make the message as it would be stored."""
    latest = SqliteLog(db, session.id).latest() if session else None
    routing = Routing(addressed.names, addressed.markers)
    message = NewMessage(addressed.text, addressed.speaker, routing, pasted=addressed.pasted)
    return message.stored_as(f"msg-{next_number((latest,) if latest else ())}")


def check_images(team: Team, member: Member, images: Sequence[Image]) -> None:
    """Raise `UsageError` when there are images and the member's CLI takes none, or a host would have to get them."""
    if images and member.host:
        names = ", ".join(image.name for image in images)
        raise UsageError(f"{member.name}'s host gets no images ({names}); send it to a member of this machine")
    if images and member.type == "ai" and team.agent_of(member).type.runner.images is None:
        names = ", ".join(image.name for image in images)
        clis = listed(*(row.name for row in CLIS if row.runner.images))
        raise UsageError(f"{member.name}'s CLI takes no images ({names}): only {clis} do")


def check_room(
    team: Team, member: Member, message: ConversationMessage, task: str | None, *, cut: bool, part: Part | None = None
) -> None:
    """Raise `NoRoom` when a person's message does not fit into the member's prompt as a whole, unless it may be `cut`.

    The smallest prompt counts: without history and layers, which are cut before the message. `part` is the member's
    work on the message in a process. Also raises `PromptTooLarge` when the smallest prompt is above the limit of its
    CLI, or has no room for any of the message.
    """
    if member.type == "human":
        return
    log = MemoryLog()
    log.restore((message,), task)
    manager = ContextManager(
        log, context_window_size=0, max_bytes=team.max_bytes, fence_key=message.id if team.fence else None
    )
    route = Route(message.id, message.speaker.role_name, message.id, target=member.name, part=part)
    built = build_prompt(team, member, route, manager, lambda *_: lambda _name: False)
    if built.assembled.trimmed.message_bytes and not cut:
        raise NoRoom(
            f"the message has {byte_length(message.content):,} bytes, and {member.name}'s prompt with it"
            f" {_whole_bytes(team, built, message):,}: over max_bytes ({team.max_bytes:,}). Raise it in the team file,"
            " or leave the middle of the message out (--cut)"
        )


def _whole_bytes(team: Team, built: BuiltPrompt, message: ConversationMessage) -> int:
    """Compute the size of the prompt if nothing were cut out of the message."""
    shown = built.assembled.prompt[built.assembled.message_at :]
    ending = f"\n{closing('0' * LENGTH)}" if team.fence else ""
    return built.fresh_bytes - byte_length(shown) + byte_length(quoted_text(message).strip() + ending)
