"""`--verdict PASS,FAIL`: the exit code is decided by the word at the end of a reply, or by the winner of a vote.

For a message it is the reply of each member that the message itself calls, never of a member called by an agent. For a
process it is the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.engine.processes.vote import VoteReport, fold_option
from teamchat.core.errors import ExitCode, UsageError
from teamchat.core.routing.markdown import own_words
from teamchat.core.routing.markers import read_markers
from teamchat.core.routing.requests import quoted
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.routes import replies_to, requests_of
from teamchat.core.text.clean import clean
from teamchat.core.text.last_word import folded, last_word
from teamchat.core.text.verdict import verdict_in
from teamchat.core.turn.run_events import Conclusion, RunVerdict

LEAST = 2  # words
LONGEST = 100  # characters of a word


def verdict_words(written: str) -> tuple[str, ...]:
    """Parse the words of the option. Raises `UsageError` unless they are at least two different ones."""
    words = tuple(word.strip() for word in written.split(","))
    different = len({folded(word[:LONGEST]) for word in words}) == len(words) >= LEAST
    if not (different and all(0 < len(word) <= LONGEST and last_word(word) == word for word in words)):
        raise UsageError(f"--verdict expects at least two different words such as PASS,FAIL, got {quoted(written)}")
    return words


def check_options(words: Sequence[str], options: Sequence[str]) -> None:
    """Raise `UsageError` if a word is none of the options of a vote: no result could be that verdict."""
    known = {fold_option(option) for option in options}
    for word in words:
        if fold_option(word) not in known:
            raise UsageError(f"--verdict {word}: expected options of the vote, which are {', '.join(options)}")


def replies_of(coordinator: ConversationCoordinator) -> list[str] | None:
    """Return the replies of members whom the person's message calls, as `replies_to_all` does. None for a process.

    A run without a message of its own resumes the messages of its turns.
    """
    run = coordinator.run
    if run.tally.process:
        return None
    said = run.tally.said
    requests = {said} if said else requests_of(run.db, run.session, run.tally.routes)
    return replies_to_all(run.db, run.session, requests)


def replies_to_all(db: Database, session: int, requests: Iterable[str]) -> list[str]:
    """List the replies of members whom these messages of a person call, without markers; "" for a missing reply."""
    log = SqliteLog(db, session)
    replies = (reply for request in requests for reply in replies_to(db, session, request))
    said = (log.get(reply) if reply else None for reply in replies)
    return [read_markers(message.content, "ai", message.pasted).stripped if message else "" for message in said]


def with_verdict(conclusion: Conclusion, words: Sequence[str], replies: Sequence[str] | None = None) -> Conclusion:
    """Give the conclusion the exit code of its verdict; one that stopped short keeps its own and has none.

    All `replies` must give the first word. Without `replies` the result of the process decides.
    """
    if conclusion.code is not ExitCode.DONE:
        return replace(conclusion, verdict=RunVerdict(None))
    word, why = _of_result(conclusion, words) if replies is None else _of_replies(replies, words)
    if word is None:
        return replace(conclusion, code=ExitCode.NO_VERDICT, reason=why, verdict=RunVerdict(None))
    if word == words[0]:
        return replace(conclusion, verdict=RunVerdict(word))
    return replace(conclusion, code=ExitCode.OTHER_VERDICT, reason=f"the verdict is {word}", verdict=RunVerdict(word))


def _of_replies(replies: Sequence[str], words: Sequence[str]) -> tuple[str | None, str]:
    """Return the first word if all replies give it, else the first other one; None and why if a reply gives none."""
    if not replies:
        return None, "no member that the message calls has replied"
    given = [verdict_of(reply, words) for reply in replies]
    if None in given:
        return None, f"the last line gives none of {', '.join(words)}"
    return next((word for word in given if word != words[0]), words[0]), ""


def _of_result(conclusion: Conclusion, words: Sequence[str]) -> tuple[str | None, str]:
    """Return the verdict, or None and why there is none. The verdict of a vote is the whole winner."""
    if not isinstance(conclusion.process, VoteReport):
        return _of_replies([read_markers(conclusion.text, "ai", conclusion.repeated).stripped], words)
    winner = conclusion.text  # a vote without one is not done
    word = next((word for word in words if fold_option(word) == fold_option(winner)), None)
    return word, f"the winner {winner} is none of {', '.join(words)}"


def verdict_of(text: str, words: Sequence[str]) -> str | None:
    """Find the word that a reply ends with; None if it is none of these.

    Text that Markdown quotes (`> PASS`) or hides (`<!-- PASS -->`), a model's thoughts (`<think>`), and escape
    sequences of a terminal are not part of it.
    """
    return verdict_in(own_words(clean(text)), words)
