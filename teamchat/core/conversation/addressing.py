"""Addressing: the members that a message calls by its markers and `--to`, and who speaks in a person's message."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain

from msgspec import Struct

from teamchat.core.engine.decide import asker_gone, default_target
from teamchat.core.engine.state import State
from teamchat.core.errors import NearMiss, NotTrusted, UnknownName, UnknownPerson, UsageError
from teamchat.core.messages import Span, Speaker, well_formed
from teamchat.core.routing.at_calls import ALL, at_notes, first_strangers
from teamchat.core.routing.markers import Author, Marker, MarkerKind, WhyNot, read_markers, touches
from teamchat.core.routing.names import Directory, Unknown, fold, match_member
from teamchat.core.routing.requests import (
    Hint,
    Problem,
    ProblemKind,
    Resolution,
    RouteRequest,
    few,
    hints,
    near_miss_lines,
    parse_to,
    quoted,
    resolve,
)
from teamchat.core.routing.targets import Target
from teamchat.core.routing.todos import Wish
from teamchat.core.team.team import Member, Team
from teamchat.core.team.wording import BEFORE_EXAMPLE
from teamchat.core.text.commands import reading, saying

Prompts = Callable[[], Sequence[str]]
_SHOWN = (WhyNot.FENCE, WhyNot.CODE, WhyNot.QUOTE)


class Addressed(Struct, frozen=True):
    """A message that no turn gives, ready to be stored and routed: of a person, or of an agent that runs teamchat."""

    text: str
    """The text as it is stored."""
    speaker: Speaker
    requests: tuple[RouteRequest, ...]
    drops: tuple[str, ...] | None
    """The members whom DROP markers name; None is DROP: ALL."""
    task: str | None
    todos: tuple[Wish, ...]
    markers: tuple[str, ...]
    problems: tuple[str, ...]
    """Sentences on ignored text, near misses of markers included."""
    wordless: bool
    """Whether the message has only markers."""
    pasted: tuple[Span, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(request.target for request in self.requests)


class AddressedReply(Struct, frozen=True):
    """The requests in an agent's reply. Its problems stop nothing. No marker counts in what it has `repeated`.

    A reply of markers only has no `words`.
    """

    requests: tuple[RouteRequest, ...]
    drops: tuple[str, ...] | None
    todos: tuple[Wish, ...]
    markers: tuple[str, ...]
    problems: tuple[str, ...]
    repeated: tuple[Span, ...] = ()
    words: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(request.target for request in self.requests)


def address(
    text: str,
    team: Team,
    state: State,
    *,
    speaker: str | None = None,
    to: str | None = None,
    opens: bool = False,
    typed: int = 0,
    pasted: tuple[Span, ...] = (),
    refuse: bool = True,
    caller: Speaker | None = None,
) -> Addressed:
    """Address a person's message, or one of the `caller`: the agent in whose turn this runs.

    `speaker` is `--as`, `to` is `--to`. Nobody spoke before a message that `opens` the session. The person typed the
    first `typed` characters; with `refuse` nothing in them may look like a call that calls nobody, but for parts that
    were `pasted` in several lines, which are text. Nothing is stored when it raises one of these:

    - `NotTrusted`: there is a `caller`, and a `speaker` as well.
    - `UsageError`: the message is empty, has nothing to answer, or calls only its speaker.
    - `UnknownPerson`: the speaker is not a person of the team.
    - `UnknownName`: a title is ambiguous, or nobody that it names is known.
    - `NearMiss`: it calls nobody and typed text looks like a call or a misspelt name, or a typed message answers an
      agent that has left the team.
    """
    text = well_formed(text)
    if not text.strip():
        raise UsageError("there is nothing to send", saying())
    author = _author(caller)
    read = read_markers(text, author, pasted)
    markers = read.markers
    targets = _targets(to, team)
    resolution = resolve(markers, team.members, None, author, targets)
    who = _speaker(team, speaker, resolution, caller, state)
    calls_self = any(request.target == who.role_name for request in resolution.requests)
    requests = tuple(request for request in resolution.requests if request.target != who.role_name)
    named = bool(targets) or _names_anyone(markers)
    _refuse_unknown(resolution, requests, team, who, named=named)
    if calls_self and not requests:
        raise UsageError("you cannot call yourself; nobody was called")
    near_misses = _not_in(pasted, _near_misses(text, markers, team, who, resolution, mentions=not named))
    wordless = not read.stripped.strip()
    astray = None
    if opens and wordless:
        _refuse_unanswerable(requests)
    if not requests and not named and not wordless:
        target, astray = _default(text[:typed] if refuse else "", markers, team, state, who, pasted)
        requests = (RouteRequest(target),) if target else ()
    return Addressed(
        text=text,
        speaker=who,
        requests=requests,
        drops=resolution.drops,
        task=resolution.task,
        todos=resolution.todos,
        markers=_raw(markers),
        problems=(
            *few(problem.message for problem in resolution.problems),
            *(["you cannot call yourself; that call was ignored"] if calls_self else []),
            *([astray] if astray else []),
            *near_miss_lines(near_misses),
            *few(
                at_notes(text[:typed], team.members, (who.role_name, *(request.target for request in requests)), pasted)
            ),
            *_inert_notes(markers),
        ),
        wordless=wordless,
        pasted=pasted,
    )


def address_task(text: str, team: Team, *, speaker: str | None = None, caller: Speaker | None = None) -> Addressed:
    """Address the task that begins a process, which calls nobody. `caller` is as for `address`.

    Raises `NotTrusted` as `address` does, `UsageError` for an empty message and for one that calls somebody,
    `UnknownPerson`, and `UnknownName` for an ambiguous title.
    """
    text = well_formed(text)
    read = read_markers(text, _author(caller))
    if not read.stripped.strip():
        raise UsageError("there is no task for the process")
    resolution = resolve(read.markers, team.members, None, _author(caller), ())
    who = _speaker(team, speaker, resolution, caller)
    if _names_anyone(read.markers):
        raise UsageError("the process decides who speaks; remove the [NEXT: ...] markers, or put them in quotes")
    _refuse_unknown(resolution, (), team, who, named=False)
    return Addressed(
        text=text,
        speaker=who,
        requests=(),
        drops=resolution.drops,
        task=resolution.task,
        todos=resolution.todos,
        markers=(),
        problems=tuple(few(problem.message for problem in resolution.problems)),
        wordless=False,
    )


def _default(
    typed: str, markers: Sequence[Marker], team: Team, state: State, who: Speaker, pasted: tuple[Span, ...]
) -> tuple[str | None, str | None]:
    """Find who answers a message that names nobody, and warn if that may surprise. Raises `NearMiss` for `typed`."""
    target = default_target(state, who.role_name)
    if typed:
        _refuse_strangers(typed, team, who, pasted)
        # Another member than the one that gets the message was probably meant.
        misses = _not_in(pasted, _typed_near_misses(typed, markers, team, who))
        calls = [hint for hint in misses if hint.calls is not None]
        meant = [name for hint in calls for name in re.split("[,，、+＋]", hint.calls or "")]
        there = team.member(target) if target else None
        expected = {fold(name) for name in (there.name, there.title) if name} if there else set()
        if any(fold(name) not in expected for name in meant):
            words, named = "; ".join(near_miss_lines(calls)), ", ".join(hint.calls for hint in calls if hint.calls)
            raise NearMiss(f"{words} (--anyway sends it as it is)", named)
    return target, _astray(state, who, team, target, refuse=bool(typed))


def _targets(to: str | None, team: Team) -> tuple[Target, ...]:
    """Parse the names in `--to`. Raises `UsageError` when it names nobody."""
    targets = parse_to(to) if to is not None else ()
    if to is not None and not targets:
        raise UsageError("--to names nobody", _calling(team))
    return targets


def _refuse_unanswerable(requests: Sequence[RouteRequest]) -> None:
    """Raise `UsageError` when a session's first message has only markers, and calls somebody to answer it."""
    if requests:
        names = ", ".join(request.target for request in requests)
        raise UsageError(
            f"nothing was said yet that {names} could answer, and the message has only markers",
            reading(requests[0].target),
        )


def _calling(team: Team) -> str | None:
    """Give a command that calls the first agent of the team."""
    return next((saying("--to", member.name) for member in team.ai_members), None)


def _near_misses(
    text: str, markers: tuple[Marker, ...], team: Team, speaker: Speaker, resolution: Resolution, *, mentions: bool
) -> tuple[Hint, ...]:
    """Find texts probably meant as markers, except those that name the speaker or a member who is called anyway."""
    called = {speaker.role_name, *(request.target for request in resolution.requests)}
    return hints(text, markers, _names_without(called, team), _author(speaker), mentions=mentions)


def _names_without(called: Collection[str], team: Team) -> list[str]:
    others = (member for member in team.members if member.name not in called)
    return [name for member in others for name in (member.name, member.title) if name]


def _typed_near_misses(typed: str, markers: Iterable[Marker], team: Team, speaker: Speaker) -> tuple[Hint, ...]:
    """Find texts probably meant as markers, misspelt names included, in a typed text that calls nobody."""
    directory = Directory(team.members)

    def closest(name: str) -> str | None:
        match = directory.match(name)
        return match.closest if isinstance(match, Unknown) and match.closest != speaker.role_name else None

    own = [marker for marker in markers if marker.start < len(typed)]
    names = _names_without({speaker.role_name}, team)
    return hints(typed, own, names, _author(speaker), mentions=False, closest=closest)


def _refuse_strangers(typed: str, team: Team, speaker: Speaker, pasted: tuple[Span, ...]) -> None:
    """Raise `NearMiss` when the typed text begins with `@name`, and nobody has that name. A file's name is text."""
    word = first_strangers(typed, team.members, pasted)
    if not word or (team.root / word).exists():
        return
    targets = parse_to(word)
    problems = resolve((), team.members, None, to=targets).problems
    words = "; ".join(few(problem.message for problem in problems))
    if everybody := _everybody(problems, team, speaker):
        raise NearMiss(f"{words}; --to {everybody} calls everybody (--anyway sends it as it is)", everybody)
    meant = {problem.name: problem.closest or "" for problem in problems}
    groups = [[meant.get(name, name) for name in target.names] for target in targets]
    known = all(name not in ("", speaker.role_name) for group in groups for name in group)
    raise NearMiss(f"{words} (--anyway sends it as it is)", ",".join(map("+".join, groups)) if known else "")


def _not_in(pasted: tuple[Span, ...], found: Sequence[Hint]) -> tuple[Hint, ...]:
    return tuple(hint for hint in found if not touches(hint.position, hint.position + 1, pasted))


def _inert_notes(markers: Iterable[Marker]) -> Iterator[str]:
    """Note the markers that do not count, for each place that a person may overlook."""
    for place in (WhyNot.PASTED, WhyNot.REPEATED, WhyNot.THOUGHT, WhyNot.COMMENT):
        if raw := [marker.raw for marker in markers if marker.why_not is place]:
            more = f" and {len(raw) - 1} more" if len(raw) > 1 else ""
            yield f"{quoted(raw[0])}{more} is text, no marker: it is {place}"


def _everybody(problems: Iterable[Problem], team: Team, speaker: Speaker) -> str:
    """List the team's agents as `--to` takes them, if "all" is among the unknown names; else return an empty text."""
    wanted = any(problem.kind is ProblemKind.UNKNOWN and fold(problem.name or "") == ALL for problem in problems)
    return "+".join(member.name for member in team.ai_members if member.name != speaker.role_name) if wanted else ""


def _astray(state: State, speaker: Speaker, team: Team, target: str | None, *, refuse: bool) -> str | None:
    """Warn when an answer goes to `target` because the member that asked has left the team; else return None.

    With `refuse` it raises `NearMiss` instead: the member that asked may have a new name.
    """
    asker = asker_gone(state, speaker.role_name)
    if asker is None or target is None:
        return None
    gone = f"{asker}, who asked you, is no longer in the team"
    if not refuse:
        return f"{gone}; your answer goes to {target}"
    match = match_member(asker, team.ai_members)
    perhaps = match.closest if isinstance(match, Unknown) else None
    raise NearMiss(f"{gone} (--anyway sends your answer to {target})", perhaps or target)


def _names_anyone(markers: tuple[Marker, ...]) -> bool:
    return any(marker.kind is MarkerKind.NEXT and marker.counts and marker.targets for marker in markers)


def _raw(markers: tuple[Marker, ...]) -> tuple[str, ...]:
    return tuple(marker.raw for marker in markers if marker.kind is MarkerKind.NEXT and marker.counts)


def _refuse_unknown(
    resolution: Resolution, requests: tuple[RouteRequest, ...], team: Team, speaker: Speaker, *, named: bool
) -> None:
    unknown = [problem for problem in resolution.problems if problem.kind is ProblemKind.UNKNOWN]
    errors = [problem for problem in resolution.problems if problem.is_error]
    if named and not requests and unknown:
        errors = [*unknown, *errors]
    if not errors:
        return
    words = "; ".join(few(problem.message for problem in errors))
    if everybody := _everybody(errors, team, speaker):
        raise NearMiss(f"{words}; --to {everybody} calls everybody", everybody)
    raise UnknownName(words, "teamchat team")


def _author(speaker: Speaker | None) -> Author:
    return "ai" if speaker and speaker.type == "ai" else "human"


def speaker_of(member: Member) -> Speaker:
    """Make the speaker of a message from the member."""
    return Speaker(member.name, member.name, role_title=member.title, type=member.type)


def _speaker(
    team: Team, option: str | None, resolution: Resolution, caller: Speaker | None, state: State | None = None
) -> Speaker:
    """Find the speaker: the `caller`, else `--as`, else the FROM marker, else whom `person` takes without a name."""
    if caller and option is not None:
        raise NotTrusted(f"only a person speaks as {option}, and this runs in an agent's turn; leave out --as")
    if caller:
        return caller
    if resolution.from_name and option is not None and person(team, option).name != resolution.from_name:
        raise UsageError(f"--as says {option}, and the message says it is from {resolution.from_name}")
    named = resolution.from_name if option is None else option
    return speaker_of(person(team, resolution.signed if named is None else named, state))


def person(team: Team, name: str | None, state: State | None = None) -> Member:
    """Find the person with that name; without one, the only person of the team or the only one who is asked something.

    Raises `UnknownPerson`, also for an agent's name, and `UsageError` for a team without people.
    """
    if not team.humans:
        raise UsageError(f"team {team.name!r} has no person, and only people send messages")
    if name is None:
        asked = [human for human in team.humans if state and state.answered_by(human.name)]
        first, *others = asked or team.humans
        if others:
            names = " or ".join(human.name for human in (first, *others))
            raise UnknownPerson(f"who speaks: {names}? Say it with --as", first.name)
        return first
    member = next((member for member in team.members if fold(member.name) == fold(name)), None)
    if member and member.type == "human":
        return member
    people = [human.name for human in team.humans]
    if member:
        text = f"{member.name} is an agent; only people send messages: --as {' or '.join(people)}"
        raise UnknownPerson(text, people[0])
    match = match_member(name, team.humans)
    closest = match.closest if isinstance(match, Unknown) else None
    guess = f": did you mean {closest}?" if closest else ""
    text = f"no person {name!r} in team {team.name!r} (there are: {', '.join(people)}){guess}"
    raise UnknownPerson(text, closest or people[0])


def not_followed(earlier: Iterable[str], reply: str, team: Team, member: Member) -> tuple[str, ...]:
    """List members that an agent calls in `earlier` texts of its turn, but not in the last one, its reply."""
    called = {request.target for request in _calls(reply, team, member)}
    names = (request.target for text in earlier if text not in reply for request in _calls(text, team, member))
    return tuple(dict.fromkeys(name for name in names if name not in called))


def _calls(text: str, team: Team, member: Member) -> tuple[RouteRequest, ...]:
    markers = read_markers(text, "ai").markers
    return resolve(markers, team.members, member.name, "ai").requests if markers else ()


def address_reply(text: str, team: Team, member: Member, prompts: Prompts = tuple) -> AddressedReply:
    """Address an agent's reply, except for what it repeats of the `prompts` that its program got."""
    read = read_markers(text, "ai")
    if repeated := _repeated(text, read.markers, prompts):
        read = read_markers(text, "ai", repeated)
    markers = read.markers
    resolution = resolve(markers, team.members, member.name, "ai")
    mentions = not _names_anyone(markers)
    problems = (
        *few(problem.message for problem in resolution.problems),
        *near_miss_lines(_near_misses(text, markers, team, speaker_of(member), resolution, mentions=mentions)),
        *_inert_notes(markers),
        *(() if resolution.requests else _last_line_notes(text, markers, team, member)),
    )
    return AddressedReply(
        requests=resolution.requests,
        drops=resolution.drops,
        todos=resolution.todos,
        markers=_raw(markers),
        problems=tuple(f"{member.name}: {problem}" for problem in problems),
        repeated=repeated,
        words=bool(read.quoted.strip()),
    )


def _repeated(text: str, markers: Sequence[Marker], prompts: Prompts) -> tuple[Span, ...]:
    if not any(marker.counts for marker in markers):
        return ()
    from teamchat.core.routing.repeats import repeats

    return repeats(text, markers, prompts, BEFORE_EXAMPLE)


def _last_line_notes(text: str, markers: Sequence[Marker], team: Team, member: Member) -> Iterator[str]:
    """Note a reply that ends with a call in code or a quote, and a reply that is thinking as a whole."""
    if any(marker.why_not is WhyNot.THOUGHT for marker in markers):
        from teamchat.core.routing.markdown import asides_of

        if tag := asides_of(text).unclosed:
            yield f"the reply is one {tag} that is never closed, so no marker in it counts"
    last = markers[-1] if markers else None
    if last is None or last.kind is not MarkerKind.NEXT or last.why_not not in _SHOWN:
        return
    calls = resolve((), team.members, member.name, "ai", parse_to(last.body)).requests
    others = chain(text[text.rfind("\n", 0, last.start) + 1 : last.start], text[last.end :])
    if calls and not any(map(str.isalpha, others)):
        yield f"{quoted(last.raw)} in the last line calls nobody: it is {last.why_not}"
