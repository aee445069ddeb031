"""From a route to the exact bytes that its member is given: context, framework, assembler, the last step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from teamchat.assemblers.base import AssemblerOutput, BudgetExceeded
from teamchat.core.agents import AGENT_TYPES
from teamchat.core.context_manager import ContextManager
from teamchat.core.errors import PromptTooLarge, UsageError
from teamchat.core.framework import framework_text, turn_note
from teamchat.core.history import text_of
from teamchat.core.messages import ConversationMessage
from teamchat.core.route import Route
from teamchat.core.team import Member, Team
from teamchat.runners.base import Limit, Prepared


@dataclass(frozen=True, slots=True)
class BuiltPrompt:
    """What a member is given: `stdin` exactly, the system text apart from it, and the message that it answers."""

    assembled: AssemblerOutput
    prepared: Prepared
    answers: ConversationMessage

    @property
    def system_text(self) -> str | None:
        return self.assembled.system_flag


def build_prompt(
    team: Team, member: Member, route: Route, manager: ContextManager, exists: Callable[[Path, str], bool]
) -> BuiltPrompt:
    """The prompt of `route`, as of its `as_of` message (the newest with text, when it has none).

    `exists` tells whether an `@path` names something in a member's folder.
    Raises `PromptTooLarge` when what may not be cut is over the budget, or the whole over the CLI's own limit.
    """
    kind = AGENT_TYPES[team.agent_of(member).like]
    answers, shown = manager.get_shown(up_to=route.as_of)
    if answers is None:
        raise UsageError("there is no message with text for anybody to answer", 'teamchat send "[NEXT:name] Hi"')
    request = manager.get_message(route.request)
    given = manager.get_context_for_agent(
        member.name,
        kind.name,
        system_instruction=member.system_instruction,
        instruction_file_text=member.instruction_file_text,
        up_to=answers.id,
        framework=framework_text(team, member),
        turn_note=turn_note(route, member, request, answers),
        request=None if request.id in shown else text_of(request),
    )
    try:
        assembled = manager.assemble_prompt(kind.name, given)
        if request.id in shown[: assembled.trimmed.history_messages]:  # the budget dropped it with the history
            assembled = manager.assemble_prompt(kind.name, replace(given, request=text_of(request)))
    except BudgetExceeded as error:
        raise PromptTooLarge(
            f"{member.name}: {error}", "shorten the task or the instructions, or raise max_bytes"
        ) from error
    own_from = (assembled.message_at or 0) if answers.speaker.type == "human" else len(assembled.prompt)
    prepared = kind.runner.prepare(assembled.prompt, own_from=own_from, exists=lambda path: exists(member.cwd, path))
    check_limit(member, kind.runner.limit, prepared.stdin)
    return BuiltPrompt(assembled, prepared, answers)


def exists(folder: Path, path: str) -> bool:
    """Whether an `@path` of a prompt names something a CLI would read."""
    try:
        return (folder / Path(path).expanduser()).exists()
    except (OSError, ValueError, RuntimeError):  # too long, a NUL in it, `~nobody`: nothing a CLI could open either
        return False


def check_limit(member: Member, limit: Limit | None, stdin: bytes) -> None:
    if limit is None:
        return
    size = len(stdin) if limit.unit == "bytes" else len(stdin.decode())
    if size > limit.size:
        raise PromptTooLarge(
            f"{member.name}: the prompt has {size:,} {limit.unit}, its CLI takes {limit.size:,}",
            "send less, or lower max_bytes in the team file",
        )
