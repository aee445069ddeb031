"""Every error that a user can cause, and every exit code.

The message of an error is the sentence the user reads; its class carries the exit code.

    TeamchatError              1
    ├── MemberFailed           1   a turn has no reply, as Python code gets it: also 3 (timeout) and 6 (part of a group)
    ├── UsageError             2   a wrong option or argument
    │   ├── TeamFileError      2   the team file is wrong
    │   └── NothingToResume    2   `resume` found no route that waits
    ├── TimedOut               3   what was to be sent did not come in time
    ├── UnknownName            4   no such team, member or session; an ambiguous name
    │   ├── NearMiss           4   what looks like a call and is not one
    │   ├── NoConversation     4   the store has none
    │   ├── NoMessage          4   no message of a conversation, or none any more, has that id
    │   └── UnknownPerson      4   a speaker that is no person of the team
    ├── NotTrusted             5   the team file asks for something that was not trusted
    ├── GuardReached           7   a limit lets nobody try it again or elsewhere
    │   └── BudgetUsedUp       8   no budget is left to do so
    ├── StoreError            13   the store cannot be read or written; also the code of output that cannot be written
    │   ├── DamagedStore      13   what it holds makes no sense
    │   ├── DiskFull          13   there is no room to write it
    │   ├── StoreGone         13   its file was removed or replaced while it was open
    │   └── SessionBusy       13   another process runs this conversation
    ├── PromptTooLarge        12   the input is over a limit before anything was run
    │   └── NoRoom            12   a person's message would have to be cut
    ├── AgentMissing          11   the program of an agent or a check cannot be run
    │   └── HostUnavailable   11   no host can run a turn now, or their database cannot be used
    ├── CheckpointFailed       1   the files of a work tree cannot be recorded, compared or restored
    ├── Interrupted          130   stopped before anything was run
    └── NoRecording           10   a replay came to a turn that was not recorded

How a *turn* ends is not an exception but an `Outcome` (`core/receipt.py`), nor is a pause of a conversation one:
`CODES` has theirs. A Python program that has a conversation gets both as exceptions (`ended_with`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class ExitCode(IntEnum):
    """What `teamchat` exits with. Scripts rely on these numbers, so none of them changes its meaning.

    The verdict is that of a run that is done: the word of `--verdict`, or the winner of a vote.
    """

    DONE = 0
    MEMBER_FAILED = 1
    USAGE = 2
    TIMEOUT = 3
    UNKNOWN_NAME = 4
    NOT_TRUSTED = 5
    GROUP_PARTLY_FAILED = 6
    GUARD = 7
    BUDGET = 8
    HUMAN_ASKED = 9
    NO_RECORDING = 10
    AGENT_UNAVAILABLE = 11
    TOO_LARGE = 12
    STORE = 13
    OTHER_VERDICT = 14
    NO_VERDICT = 15
    CHECK_RED = 16
    REVIEW_FAILED = 17
    INTERRUPTED = 130
    TERMINATED = 143


CODES: Mapping[str, ExitCode] = MappingProxyType(
    {
        # a turn that failed, by its `FailureKind`
        "agent": ExitCode.MEMBER_FAILED,
        "rate_limit": ExitCode.MEMBER_FAILED,
        "overloaded": ExitCode.MEMBER_FAILED,
        "gone": ExitCode.MEMBER_FAILED,
        "stopped": ExitCode.MEMBER_FAILED,
        "timeout": ExitCode.TIMEOUT,
        "refused": ExitCode.NOT_TRUSTED,
        "budget": ExitCode.BUDGET,
        "missing": ExitCode.AGENT_UNAVAILABLE,
        "login": ExitCode.AGENT_UNAVAILABLE,
        "too_large": ExitCode.TOO_LARGE,
        # a conversation that was paused, by its `PauseKind`
        "turns": ExitCode.GUARD,
        "time": ExitCode.GUARD,
        "loop": ExitCode.GUARD,
        "tokens": ExitCode.BUDGET,
        "cost": ExitCode.BUDGET,
        # a check that was not run, by its `NotRun`
        "ended": ExitCode.MEMBER_FAILED,
        # a process that cannot continue, by its `StuckKind`, or that is over and has left something open
        "stuck": ExitCode.MEMBER_FAILED,
        "no_answer": ExitCode.GROUP_PARTLY_FAILED,
        "no_progress": ExitCode.GUARD,
        "no_verdict": ExitCode.NO_VERDICT,
        "check_red": ExitCode.CHECK_RED,
        "review_failed": ExitCode.REVIEW_FAILED,
        # either
        "interrupted": ExitCode.INTERRUPTED,
    }
)
"""What `teamchat` exits with when a turn failed, a conversation was paused, or a process did not end well."""


class TeamchatError(Exception):
    """An error, in a sentence that also says what to do where no command does it.

    `hint` has the commands that mend it, one a line: each pastes into bash, zsh and fish as it stands.
    """

    code = ExitCode.MEMBER_FAILED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class MemberFailed(TeamchatError):
    pass


class UsageError(TeamchatError):
    code = ExitCode.USAGE


class TeamFileError(UsageError):
    """The message names the file, the key and what was expected."""


class NothingToResume(UsageError):
    pass


class TimedOut(TeamchatError):
    code = ExitCode.TIMEOUT


class UnknownName(TeamchatError):
    code = ExitCode.UNKNOWN_NAME


class NearMiss(UnknownName):
    """A person's message that calls nobody and was probably meant to call `names`, as `--to` takes them.

    They are empty where nobody is called that, or nearly that.
    """

    def __init__(self, message: str, names: str) -> None:
        super().__init__(message)
        self.names = names


class NoConversation(UnknownName):
    pass


class NoMessage(UnknownName, KeyError):
    """No message of a stored conversation has that id, or the one that has it was undone."""

    __str__ = Exception.__str__  # a KeyError quotes its message


class UnknownPerson(UnknownName):
    """A speaker that is no person of the team; `person` is one, perhaps the one that was meant."""

    def __init__(self, message: str, person: str) -> None:
        super().__init__(message)
        self.person = person


class NotTrusted(TeamchatError):
    code = ExitCode.NOT_TRUSTED


class StoreError(TeamchatError):
    code = ExitCode.STORE


class DamagedStore(StoreError):
    pass


class DiskFull(StoreError):
    pass


class StoreGone(StoreError):
    pass


class SessionBusy(StoreError):
    pass


class PromptTooLarge(TeamchatError):
    code = ExitCode.TOO_LARGE


class NoRoom(PromptTooLarge):
    """A person's message would have to be cut, which nobody has allowed."""


class CheckpointFailed(TeamchatError):
    """The files of a work tree cannot be recorded, compared or restored."""


class AgentMissing(TeamchatError):
    code = ExitCode.AGENT_UNAVAILABLE


class HostUnavailable(AgentMissing):
    pass


class GuardReached(TeamchatError):
    code = ExitCode.GUARD


class BudgetUsedUp(GuardReached):
    code = ExitCode.BUDGET


class Interrupted(TeamchatError):
    code = ExitCode.INTERRUPTED


class NoRecording(TeamchatError):
    code = ExitCode.NO_RECORDING


_BY_CODE: Mapping[ExitCode, type[TeamchatError]] = MappingProxyType(
    {
        kind.code: kind
        for kind in (
            UsageError, UnknownName, NotTrusted, GuardReached, BudgetUsedUp, StoreError, PromptTooLarge, AgentMissing,
            Interrupted, NoRecording,
        )
    }
)  # fmt: skip


def ended_with(code: ExitCode, reason: str, hint: str | None) -> TeamchatError:
    """Build the error of a run that has ended with that code. A traceback shows the commands of its hint, too."""
    error = _BY_CODE.get(code, MemberFailed)(reason, hint)
    error.code = code
    for line in (hint or "").splitlines():
        error.add_note(f"try: {line}")
    return error
