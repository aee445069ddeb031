"""The answers and the result of a process, in words for a person instead of JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from teamchat.core.engine.processes import best, debate, mapreduce, until, until_round, vote
from teamchat.core.engine.processes import until_reading as until_review
from teamchat.core.engine.processes.best import BestReport
from teamchat.core.engine.processes.debate import DebateReport
from teamchat.core.engine.processes.hierarchical import HierarchicalReport
from teamchat.core.engine.processes.mapreduce import MapReduceReport, SubtaskStatus
from teamchat.core.engine.processes.replies import WrittenValue, written_list, written_object
from teamchat.core.engine.processes.until_report import UntilCheck, UntilReport, UntilReview
from teamchat.core.engine.processes.vote import Vote, VoteReport
from teamchat.core.engine.workflow import Ballot, Kind, Part, Plan, Position, Process, Review, ReviewFinding, Synthesis
from teamchat.core.routing.names import fold
from teamchat.runners.untrusted.json import first_of, listed, one_line

KEYS = {
    (Kind.VOTE, vote.MEMBER): {"option", "reason"},
    (Kind.DEBATE, debate.BLIND): {"position"},
    (Kind.DEBATE, debate.ROUND): {"position", "changed"},
    (Kind.DEBATE, debate.SYNTHESIS): {"agree", "dissent"},
    (Kind.BEST, best.JUDGE): {"winner", "reasons"},
    (Kind.UNTIL, until_round.REVIEWER): {"round", "verdict", "findings"},
}
"""The keys of the JSON that a part asks for. A text with other fields is shown as written, so that nothing is lost."""
PLANS = (Kind.MAPREDUCE, mapreduce.PLANNER)


def has_form(part: Part | None) -> bool:
    """Whether the part asks for JSON."""
    return part is not None and (part.kind, part.role) in (*KEYS, PLANS)


def in_words(part: Part | None, speaker: str, reply: str, workers: Sequence[str] = ()) -> str:
    """Put the JSON of a reply into words, as Markdown: `max votes 1200: fits most screens`.

    The text around the JSON stays. A reply that lacks the form of its part is returned unchanged. `workers` get the
    subtasks of a plan in turn, if they are known.
    """
    if part is None or not has_form(part):
        return reply
    written = written_list(reply) if (part.kind, part.role) == PLANS else written_object(reply)
    if not isinstance(written, WrittenValue):
        return reply
    if isinstance(written.value, dict) and not written.value.keys() <= KEYS[Kind(part.kind), part.role]:
        return reply
    if not (said := "\n".join(_words(part, speaker, reply, written, workers))):
        return reply
    around = (reply[: written.start].rstrip(), said, reply[written.end :].strip())
    return "\n\n".join(filter(None, around))


def workers_of(process: Process | None, message: str) -> tuple[str, ...]:
    """Return the members that get the subtasks of the plan in that message; empty if it is no such plan."""
    if process is None or process.kind is not Kind.MAPREDUCE:
        return ()
    return process.members if any(done.message == message for done in process.of(mapreduce.PLANNER)) else ()


def _words(part: Part, speaker: str, reply: str, written: WrittenValue, workers: Sequence[str]) -> Iterator[str]:
    if part.kind == Kind.BEST:
        label, reasons = best.picked(part.options, written.value)
        if label and reasons:
            names = dict(zip(part.options, part.compares, strict=False))
            whose = f"{names[label]} (answer {label})" if label in names else f"answer {label}"
            yield f"{speaker} picks {whose}: {reasons}"
        return
    if part.kind == Kind.UNTIL:
        review = until_review.read_review(reply, part.number)
        if isinstance(review, Review) and not review.more:
            yield f"{speaker}: {'PASS' if review.passed else 'FAIL'}"
            yield from (f"{number}. {in_place(finding)}" for number, finding in enumerate(review.findings, 1))
        return
    kind = Kind(part.kind)
    read = {Kind.VOTE: vote.read, Kind.DEBATE: debate.read, Kind.MAPREDUCE: mapreduce.read}[kind]
    finding = read(Process(kind, part.labels, speaker, options=part.options), part, reply, ())
    match finding:
        case Ballot(option=option, reason=reason) if isinstance(written.value.get("reason", ""), str):
            if option is not None or written.value["option"] is None:
                yield _voted(speaker, option, reason)
        case Position(position=position, changed=changed) if isinstance(written.value.get("changed", False), bool):
            holds = {None: "holds", False: "still holds", True: "now holds"}[changed]
            yield f"{speaker} {holds}: {position.strip()}"
        case Synthesis(agree=agree, dissent=dissent) if _all_told(written, finding):
            yield f"{listed(*agree)} {'agrees' if len(agree) == 1 else 'agree'}" if agree else "nobody agrees"
            yield from (f"\n{name} dissents: {why.strip()}" for name, why in dissent.items())
        case Plan(subtasks=subtasks):
            for number, task in enumerate(subtasks):
                to = f"→ {workers[number % len(workers)]}: " if workers else ""
                yield f"{number + 1}. {to}{task.strip()}".replace("\n", "\n   ")


def _voted(speaker: str, option: str | None, reason: str) -> str:
    return f"{speaker} {'abstains' if option is None else f'votes {option}'}{f': {reason.strip()}' if reason else ''}"


def _all_told(written: WrittenValue, said: Synthesis) -> bool:
    """Whether the words include everybody named; words about a lead that is not a member do not count."""
    names = {fold(name) for name in (*written.value["agree"], *written.value["dissent"])}
    return names == {fold(name) for name in (*said.agree, *said.dissent)}


MOST_FILES = 10  # named in a line
SHORT_TREE = 7  # characters of a git tree's name
LONGEST_TASK = 80  # characters of a subtask
LONGEST_REASON = 500  # Characters of a member's reason or position; `--json` has all of it.


class Bar(Struct, frozen=True):
    """The number of members that chose something, and their names."""

    label: str
    count: int
    who: tuple[str, ...] = ()


class Result(Struct, frozen=True):
    """The result of a process: the outcome, how many stand behind what, and what led to it, a line each."""

    title: str
    bars: tuple[Bar, ...] = ()
    lines: tuple[str, ...] = ()


def result_of(report: Struct) -> Result | None:
    """Return the result; None if the replies say all of it."""
    match report:
        case VoteReport():
            return _of_vote(report)
        case DebateReport():
            return _of_debate(report)
        case BestReport():
            return _in_lines(best_lines(report))
        case MapReduceReport():
            return _in_lines(map_reduce_lines(report, whom=True))
        case HierarchicalReport():
            return _of_hierarchical(report)
        case UntilReport():
            return _in_lines(until_lines(report))
        case _:
            return None


def _in_lines(lines: Iterable[str], bars: tuple[Bar, ...] = ()) -> Result:
    title, *more = lines
    return Result(title, bars, tuple(line.strip() for line in more))


def vote_title(report: VoteReport) -> str:
    if report.winner is not None:
        return f"vote: {report.winner} wins"
    if report.tie:
        return f"vote: a tie of {listed(*report.tied)}"
    return f"vote: no winner{' yet' if any(report.tally.values()) else ''}"  # else one option wins, or several tie


def _of_vote(report: VoteReport) -> Result:
    """List the options by their votes, then the votes: those for the winner first."""
    options = sorted(report.tally, key=lambda option: -report.tally[option])
    bars = (
        Bar(option, report.tally[option], tuple(voter(vote) for vote in report.votes if vote.option == option))
        for option in options
    )
    ordered = sorted(report.votes, key=lambda vote: vote.option != report.winner)
    lines = [
        vote_line(ballot, dissents=report.winner is not None and ballot.option != report.winner) for ballot in ordered
    ]
    return Result(vote_title(report), tuple(bars), (*lines, *not_voted(report)))


def vote_line(vote: Vote, *, dissents: bool = False) -> str:
    if dissents and vote.option is not None:
        return f"{voter(vote)} dissents with {vote.option}{f': {said(vote.reason)}' if vote.reason else ''}"
    return _voted(voter(vote), vote.option, said(vote.reason))


def not_voted(report: VoteReport) -> Iterator[str]:
    return (f"{member} has not voted" for member in report.missing)


def voter(vote: Vote) -> str:
    return f"{vote.by} for {vote.member}" if vote.by else vote.member


def _of_debate(report: DebateReport) -> Result:
    if report.agree is None:
        return _in_lines(debate_lines(report))
    against = tuple(report.dissent or {})
    bars = (Bar("agree", len(report.agree), report.agree), Bar("dissent", len(against), against))
    return _in_lines(debate_lines(report), bars)


def debate_lines(report: DebateReport) -> Iterator[str]:
    """Write `debate: 2 of 3 agree`, then who does not, and who changed its mind."""
    members = list(dict.fromkeys(answer.member for answer in report.answers))
    if report.agree is not None:
        yield f"debate: {len(report.agree)} of {len(members)} agree with the synthesis"
    elif report.synthesis is not None:
        yield "debate: the synthesis does not say who agrees with it"
    else:
        yield "debate: there is no synthesis yet"
    yield from (f"  {member} dissents: {said(why)}" for member, why in (report.dissent or {}).items())
    for change in report.changes:
        before = f"{said(change.before)} → " if change.before else ""
        yield f"  {change.member} changed its mind in round {change.round}: {before}{said(change.after)}"
    yield from (f"  {member} gave no answer" for member in report.missing)


def best_lines(report: BestReport) -> Iterator[str]:
    """Write `best: kim picks sarah: It is the shortest.`, then what the letters in the reasons stand for."""
    if report.winner is None:
        yield "best: nobody is picked"
    elif any(candidate.label for candidate in report.candidates):
        yield f"best: {report.judge} picks {report.winner}: {said(report.reasons or '')}"
    else:
        yield f"best: {report.winner}, without a judge: {report.reasons}"
    for candidate in report.candidates:
        letter = f" is {candidate.label}, and" if candidate.label else ""
        number = len(candidate.files) + candidate.more
        if candidate.message is None:
            yield f"  {candidate.member} gave no answer"
        else:
            yield f"  {candidate.member}{letter} changed {_plural(number, 'file') if number else 'no file'}"


def map_reduce_lines(report: MapReduceReport, *, whom: bool = False) -> Iterator[str]:
    """Write `map-reduce: 8 of 12 subtasks are done, 3 are answered`, then each with who did it.

    With `whom`, a skipped subtask also names who was asked for it.
    """
    if not report.subtasks:
        yield f"map-reduce: {report.planner} has made no plan{f': {report.fault}' if report.fault else ''}"
        return
    count = Counter(subtask.status for subtask in report.subtasks)
    done, answered = count[SubtaskStatus.DONE], count[SubtaskStatus.ANSWERED]
    more = f", {answered} {'is' if answered == 1 else 'are'} answered" if answered else ""
    yield f"map-reduce: {done} of {_plural(len(report.subtasks), 'subtask')} {'is' if done == 1 else 'are'} done{more}"
    for subtask in report.subtasks:
        by = f" by {subtask.member}" if subtask.member and subtask.status is SubtaskStatus.DONE else ""
        if whom and subtask.member and subtask.status is SubtaskStatus.SKIPPED:
            by = f", as {subtask.member} gave no result"
        yield f"  {subtask.number}. {subtask.status}{by}: {one_line(subtask.task, LONGEST_TASK)}"


def until_lines(report: UntilReport) -> Iterator[str]:
    """Write `until: done after 2 of 3 rounds`, then each round with its verification and its costs."""
    number = len(report.rounds)
    yield f"until: {until.ENDS[report.result]} after {number} of {_plural(report.most_rounds, 'round')}"
    if report.before:
        found = (f"{_checked(check)}, which counts {check.count or 0:,}" for check in report.before)
        yield f"  before the work: {'; '.join(found)}"
    for round_ in report.rounds:
        said_in = f" ({round_.messages[-1]})" if round_.messages else ""
        skipped = (f"{one_line(name, LONGEST_TASK)} skipped" for name in round_.skipped)
        verified = (*map(_checked, round_.checks), *skipped, *map(_reviewed, round_.reviews))
        yield f"  round {round_.number}: {'; '.join((f'{round_.doer}{said_in}', *verified))}"
    for finding in report.open_findings:
        yield f"  open: {in_place(finding)}"
    yield from _doubts(report)
    yield from _taken(report)


def _doubts(report: UntilReport) -> Iterator[str]:
    """Say what the end of an `until` does not vouch for."""
    for name in report.flaky:
        yield f"  flaky: {one_line(name, LONGEST_TASK)} was green and red on the same files"
    touched = [*dict.fromkeys(path for round_ in report.rounds for path in round_.touched)]
    if touched:
        what = "tests that nothing protects" if report.unprotected else "tests, or what configures them"
        yield f"  changed by {report.do}: {what}: {', '.join(first_of(touched, MOST_FILES))}"


def _checked(check: UntilCheck) -> str:
    """Write `tests red, exit code 1 (check-1, 4a8b1b7)`, with the beginning of the git tree."""
    why = f", {check.reason}" if check.reason else ""
    status = f"{check.status.replace('_', ' ')}{why}"
    return f"{one_line(check.check, LONGEST_TASK)} {status} (check-{check.number}{_at(check.tree)})"


def _reviewed(review: UntilReview) -> str:
    if review.passed is None:
        return f"{review.reviewer} no answer that counts{f' ({review.message})' if review.message else ''}"
    count = len(review.findings) + review.more
    findings = f", {_plural(count, 'finding')}" if count else ""
    return f"{review.reviewer} {'PASS' if review.passed else 'FAIL'}{findings} ({review.message}{_at(review.tree)})"


def _at(tree: str) -> str:
    return f", {tree[:SHORT_TREE]}" if tree else ""


def _taken(report: UntilReport) -> Iterator[str]:
    """List the files, where they were checked, and what each member used."""
    if report.files:
        yield f"  files: {', '.join(first_of(report.files, MOST_FILES))}"
    if any(round_.checks for round_ in report.rounds):
        tree = f": tree {report.tree}" if report.tree else ""
        where = f"in the worktree {report.worktree}" if report.worktree else "in your folder"
        names = ", ".join(one_line(name, LONGEST_TASK) for name in report.ignored)
        do = "does" if len(report.ignored) == 1 else "do"
        lacks = f", so {names} {do} not cover what git ignores" if report.ignored else ", and in a new one"
        yield f"  checked {where}{lacks}{tree}"
    for member in report.members:
        tokens = (member.input_tokens or 0) + (member.output_tokens or 0)
        used = "tokens unknown" if member.input_tokens is None else f"{tokens:,.0f} tokens"
        cost = "" if member.cost_usd is None else f", ${member.cost_usd:.2f}"
        yield f"  {member.member}: {_plural(member.turns, 'turn')}, {member.seconds:.0f} s, {used}{cost}"
    if report.seconds:
        yield f"  {report.seconds:.0f} s in all"


def in_place(finding: ReviewFinding) -> str:
    """Write a finding: `app.py:12 (high): It does not stop.`"""
    place = f"{finding.file}:{finding.line}" if finding.line and finding.file else finding.file
    where = " ".join(filter(None, (place, f"({finding.severity})" if finding.severity else "")))
    return said(f"{where}: {finding.text}" if where else finding.text)


def _of_hierarchical(report: HierarchicalReport) -> Result | None:
    works = [(handout.message, work) for handout in report.handouts for work in handout.replies]
    if not works:
        return None
    done = sum(work.message is not None for _, work in works)
    answered = f"{_plural(len(works), 'call')} of {report.lead} {'is' if done == 1 else 'are'} answered"
    lines = (
        f"{number}. {work.member}, called in {called}: {f'done in {work.message}' if work.message else 'no answer'}"
        for number, (called, work) in enumerate(works, 1)
    )
    return Result(f"hierarchical: {done} of {answered}", (), tuple(lines))


def said(text: str) -> str:
    """Shorten a member's text, of any number of lines, to a few words."""
    return one_line(text, LONGEST_REASON)


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
