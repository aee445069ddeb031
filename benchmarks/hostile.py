"""What a hostile reply costs from the process to the screen, by its kind.

Every pass over a text is measured alone: what it asks for with its near misses, whether it is new, the store, markers
and keys out of it, the code of its fence, its mentions made inert for each vendor, the ways to show it, the HTML page,
a recording without secrets, the search for what fits it, lessons in it, and a block appended to it. A marker at the end
has it read as Markdown. A kind's figure is the time of its slowest pass with 500 KB. The floor is one pass of a
regular expression over prose of that size. `growth` is the exponent of all passes together between the two sizes: 1 is
linear.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.figure import Figure, Measures
from benchmarks.timing import TOKEN
from teamchat.assemblers.truncation import byte_length
from teamchat.cli.exporting.html import rendered
from teamchat.cli.output import Output
from teamchat.cli.output.plain import PlainOutput
from teamchat.cli.output.terminal.output import TerminalOutput
from teamchat.cli.output.terminal.surface import TerminalSurface
from teamchat.cli.startup.piped import fenced, with_block
from teamchat.core.cassette.redaction import CutRedactor
from teamchat.core.context.conversation_view import manager_of
from teamchat.core.context.history import fence_code
from teamchat.core.conversation.lessons import lessons_in
from teamchat.core.conversation.posting import Parsed, Posting, says_nothing_new
from teamchat.core.engine.state import Route
from teamchat.core.messages import NewMessage, Routing, Speaker
from teamchat.core.receipt import Setup
from teamchat.core.routing.markers import read_markers
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import create_session
from teamchat.core.store.texts import pack
from teamchat.core.store.turns import NewTurn, begin_turn
from teamchat.core.team.team import Member, Team
from teamchat.core.text.redact import Redactor, redact_shapes
from teamchat.core.text.words import match_query
from teamchat.core.turn.run import Run
from teamchat.core.turn.run_events import AgentSpoke, Replied, TurnStarted
from teamchat.runners.agent_events import TextDelta
from teamchat.runners.child.supervisor import Stopper

SMALL, LARGE = 500, 2500  # KB
MOST = 50  # times the floor, with `SMALL`
GROWTH = 1.35  # exponent; a text of five times the size takes up to nine times as long
END = "\n[NEXT: sarah]"
READERS = {"claude": "claire", "codex": "cody", "gemini": "sarah"}
PIECE = 1000  # characters of a streamed piece; what a piece costs whatever its size is in `first_delta`


def repeated(piece: str) -> Callable[[int], str]:
    return lambda size: piece * (size // len(piece) + 1)


def counted(piece: str) -> Callable[[int], str]:
    """`piece` again and again with a number in it that is another each time."""
    return lambda size: "".join(piece.format(n) for n in range(size // len(piece) + 1))


def unlike_runs(mark: str, between: str = " ") -> Callable[[int], str]:
    """Runs of one, two, three ... of the mark, each of a length that comes once."""
    return lambda size: between.join(mark * n for n in range(1, math.isqrt(2 * size) + 1))


def once(before: str, piece: str, after: str = "") -> Callable[[int], str]:
    return lambda size: before + piece * (size // len(piece)) + after


ACCENTS = "[NEXT: a" + "\u0301\u0316" * 4000 + "]\n@a" + "\u0301\u0316" * 4000 + "\n"
KINDS: dict[str, Callable[[int], str]] = {
    "prose": repeated("The quick brown fox jumps over the lazy dog. "),
    "markers": repeated("[NEXT: max] "),
    "marker lines": repeated("[NEXT: max]\n"),
    "markers of many members": counted("[NEXT: m{0}]\n"),
    "unknown names": counted("[NEXT: nobody{0}] "),
    "unclosed markers": repeated("[NEXT: max "),
    "nested markers": repeated("[NEXT: [NEXT: max] "),
    "empty markers": repeated("[NEXT:]"),
    "escaped markers": repeated("\\[NEXT: max] "),
    "markers in code": repeated("`[NEXT: max]` "),
    "a marker of a huge name": once("[NEXT: ", "x", "]"),
    "a marker of many targets": lambda size: f"[NEXT: {', '.join(f'm{n}' for n in range(size // 8))}]",
    "a marker of a large group": lambda size: f"[NEXT: {'+'.join(f'm{n}' for n in range(size // 8))}]",
    "tasks": repeated("[TEAM_TASK]\nx\n"),
    "todos": counted("[TODO: look at {0}]\n"),
    "done": counted("[DONE: {0}]\n"),
    "drops": counted("[DROP: m{0}] "),
    "full-width markers": repeated("［NEXT：sarah］"),
    "markers with hidden keywords": repeated("[NE\u200bXT: sarah] "),
    "near misses": repeated("NEXT: sarah "),
    "names of accents": repeated(ACCENTS),
    "full-width punctuation": repeated("：，［］"),
    "unlike backticks": unlike_runs("`"),
    "unlike backtick lines": unlike_runs("`", "\n"),
    "backticks": repeated("`"),
    "tildes": unlike_runs("~", "\n"),
    "fences": repeated("```\nx\n"),
    "fences and text": repeated("```\nx\n```\ny\n"),
    "fence lookalikes": repeated("``` ` \n"),
    "nested quotes": repeated(">"),
    "quote lines": repeated("> x\n"),
    "short lines": repeated("x\n"),
    "code in list lines": repeated("- look at `x`\n"),
    "fences in list lines": repeated("- ```\n"),
    "quotes in list lines": repeated("- > x\n"),
    "code in headings": repeated("# look at `x`\n"),
    "code in paragraphs": repeated("look at `x`\n\n"),
    "quotes and answers": repeated("> why is it so\nbecause of `x`\n"),
    "list markers": repeated("- "),
    "list lines": lambda size: "\n".join(" " * (2 * (n % 200)) + "- x" for n in range(size // 200)),
    "numbered lists": repeated("1. "),
    "brackets": repeated("["),
    "spaced brackets": repeated("[ "),
    "backslashes": repeated("\\"),
    "backslashes and a marker": once("", "\\", "[NEXT: max]"),
    "less-than signs": repeated("<"),
    "html": repeated("<a href='x'>"),
    "at signs": repeated("@"),
    "mentions": repeated("@sarah, "),
    "a line of mentions": once("@sarah", ", sarah"),
    "emails": counted("a{0}@example.org, "),
    "combining": repeated("e\u0301\u0302\u0303"),
    "bidi": repeated("\u202ea\u202c"),
    "joined emoji": repeated("\U0001f468\u200d\U0001f469\u200d\U0001f467"),
    "hidden bytes": repeated("".join(f"{letter}\U000e0172" for letter in "word ")),
    "half flags": repeated("\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e"),
    "colours": repeated("\x1b[31mx\x1b[0m"),
    "open sequences": repeated("\x1b["),
    "open titles": repeated("\x1b]0;"),
    "key starts": repeated("sk-"),
    "keys": counted("sk-ant-api03-ABCDEFGHIJKLMNOP{0} "),
    "token starts": repeated("eyJhbGciOiJIUzI1NiJ9."),
    "tokens of GitHub": counted("ghp_ABCDEFGHIJKLMNOPQRSTUVWXYZ{0:08} "),
    "keys of AWS": counted("AKIAABCDEFGH{0:08} "),
    "hexadecimal": repeated("0123456789abcdef"),
    "cuts": repeated("…"),
    "private key starts": repeated("-----BEGIN RSA PRIVATE KEY-----\n"),
    "addresses": repeated("://a:"),
    "base64": repeated("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0NTY3ODkw"),
    "a long line": repeated("word "),
    "a long word": repeated("x"),
    "spaces": repeated(" "),
    "tabs": repeated("\t"),
    "line ends": repeated("\n"),
    "carriage returns": repeated("\r"),
    "windows lines": repeated("x\r\n"),
    "spaces before a line end": once("x", " ", "\nx"),
    "letters and digits": repeated("0mey"),
    "rules": repeated("-=*_ "),
    "numbers": repeated("1"),
    "zero bytes": repeated("\0"),
}
LONGER = {"half flags": 5}  # how many times as long the text is in which a person is shown their codes
MOST_HOSTILE = ("empty markers", "backticks", "brackets", "less-than signs", "keys", "nested quotes", "line ends")
QUICK = (*MOST_HOSTILE, "prose", "full-width punctuation", "mixed")


def mixed(size: int) -> str:
    """A little of every kind again and again."""
    some = "".join(kind(200) for kind in KINDS.values())
    return some * (size // len(some) + 1)


MEMBERS = ("max", *READERS.values(), *(f"m{n}" for n in range(20)))


def team_in(folder: Path) -> Team:
    """A person and agents of three vendors, with prompts that have room for everything."""
    vendors = {"max": "codex", **{name: vendor for vendor, name in READERS.items()}}
    agents = (Member(name, "ai", folder, agent=vendors.get(name, "gemini")) for name in MEMBERS)
    members = (Member("kailai", "human", folder), *agents)
    tokens = 10**9
    return Team(
        "hostile", members, folder, max_bytes=tokens, max_prompt_tokens=tokens, max_message_tokens=tokens, fence=True
    )


@dataclass
class Reply:
    """One reply of `max` with `text`, and every pass over it."""

    text: str
    team: Team
    db: Database

    def __post_init__(self) -> None:
        self.session = create_session(self.db, self.team.name, None).id
        self.manager = manager_of(self.team, self.db, self.session)
        self.manager.add_message(NewMessage("Hi", Speaker("kailai", "kailai", type="human"), Routing(("max",))))
        setup = Setup((), {}, "", "read", "", "", "msg-1", "msg-1")
        new = NewTurn(self.session, None, "max", "codex", "codex", None, pack(b""), "msg-1", setup, self.team.root)
        self.turn = begin_turn(self.db, new)
        run = Run(self.team, self.db, self.session, folder=self.team.root, stopper=Stopper(), emit=lambda _event: None)
        self.posting = Posting(run)
        self.parsed: list[Parsed] = []

    def passes(self) -> dict[str, Callable[[], object]]:
        return {
            "read": self.read,
            "new": lambda: says_nothing_new(self.text, [("max", self.text + "x")], "max", 0.9),
            "store": self.store,
            "markers out": lambda: read_markers(self.text, "ai").quoted,
            "keys out": lambda: redact_shapes(self.text),
            "fence code": lambda: fence_code("key", "msg-1", [self.text]),
            **{f"inert for {vendor}": partial(self.prepare, name) for vendor, name in READERS.items()},
            "piped": lambda: self.show(PlainOutput()),
            "terminal": self.terminal,
            "streamed": self.stream,
            "page": lambda: rendered(self.text),
            "recorded": self.record,
            "searched": lambda: match_query(self.text),
            "lessons": lambda: lessons_in(self.text),
            "appended": lambda: with_block(self.text, fenced(self.text)),
        }

    def read(self) -> None:
        self.parsed = self.posting.parse((self.team.member("max"), self.text, None, tuple))

    def store(self) -> None:
        with self.db.transaction():
            self.said = self.posting.reply(self.parsed[0], self.turn, Route("msg-1", "kailai", "msg-1", 1, "max"))

    def prepare(self, reader: str) -> None:
        runner = self.team.agent_of(self.team.member(reader)).type.runner
        runner.prepare(self.text, typed=range(0), exists=lambda _name: False)

    def record(self) -> None:
        redact = CutRedactor(Redactor({"API_KEY": "hunter2-hunter2"}))
        redact("hunter2-hunter2")
        redact(self.text)

    def show(self, output: Output) -> None:
        output(Replied(self.turn, self.said.message))

    def terminal(self) -> None:
        with on_terminal() as output:
            self.show(output)

    def stream(self) -> None:
        """As it comes from a CLI: in pieces, then whole."""
        with on_terminal() as output:
            output(TurnStarted(self.turn, None))
            for at in range(0, len(self.text), PIECE):
                output(AgentSpoke("max", self.turn.number, TextDelta(self.text[at : at + PIECE])))
            self.show(output)


@contextlib.contextmanager
def on_terminal() -> Iterator[TerminalOutput]:
    """It ends with the pass, or its clock would draw during the next ones."""
    output = TerminalOutput(MEMBERS, TerminalSurface(io.FileIO(os.devnull, "w"), moves=True))
    with contextlib.closing(output):
        yield output


def seconds(work: Callable[[], object]) -> float:
    with Path(os.devnull).open("w") as no, contextlib.redirect_stdout(no), contextlib.redirect_stderr(no):
        began = time.process_time()
        work()
        return time.process_time() - began


def measure(kind: str, kilobytes: int) -> dict[str, float]:
    """Seconds of every pass."""
    make = mixed if kind == "mixed" else KINDS[kind]
    bytes_of_one = byte_length(some := make(10_000)) / len(some)
    text = make(int(kilobytes * 1000 / bytes_of_one)) + END
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Database(Path(folder) / "teamchat.db")) as db:
        return {name: seconds(work) for name, work in Reply(text, team_in(Path(folder)), db).passes().items()}


def floor() -> float:
    """Seconds of one pass over `SMALL` prose that makes a token of each word and space."""
    text = KINDS["prose"](SMALL * 1000)
    return min(seconds(lambda: TOKEN.findall(text)) for _ in range(3))


def measures(quick: bool) -> Measures:
    least = floor()
    for kind in QUICK if quick else (*KINDS, "mixed"):
        yield kind, partial(by_size, kind, least, 2 if quick else 1)


def by_size(kind: str, least: float, tries: int) -> Iterator[Figure]:
    """Of several tries the best of each pass, since a quick run is compared with an earlier one."""
    before, took = (best([measure(kind, size) for _ in range(tries)]) for size in (SMALL, LARGE))
    yield Figure(
        name=kind, unit="s", value=max(before.values()), floor=least, floor_is="a regular expression",
        bound=MOST * LONGER.get(kind, 1), note=most_of(before),
    )  # fmt: skip
    growth = math.log(sum(took.values()) / sum(before.values())) / math.log(LARGE / SMALL)
    yield Figure(name=f"{kind}, growth", unit="", value=growth, bound=GROWTH)


def best(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: min(run[name] for run in runs) for name in runs[0]}


def most_of(took: Mapping[str, float]) -> str:
    worst = sorted(took.items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{name} {took_s:.2f} s" for name, took_s in worst)
