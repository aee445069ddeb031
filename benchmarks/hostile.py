"""What a hostile reply costs from the process to the screen, by its kind.

Every step that reads a reply is measured: what it asks for, near misses, whether it is new, the store, the prompt that
quotes it (markers and keys out, the fence) of the slowest vendor, and of the ways to show it the slowest. A marker at
the end of each text has it read as Markdown. A kind's figure is the time of all these steps with 1 MB. The floor is one
pass of a regular expression over prose of the same size. `growth` is the exponent between two sizes: 1 is linear. Of
10 MB the figure is the slowest step.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.figure import Figure, Measures
from teamchat.cli.output import Output
from teamchat.cli.output.jsonl import JsonOutput
from teamchat.cli.output.plain import PlainOutput, QuietOutput
from teamchat.cli.output.terminal.output import TerminalOutput
from teamchat.cli.output.terminal.surface import TerminalSurface
from teamchat.core.context.build import build_prompt, exists
from teamchat.core.context.context_manager import manager_of
from teamchat.core.context.layers.sources import collector_of
from teamchat.core.conversation.loop_detection import says_nothing_new
from teamchat.core.conversation.posting import Parsed, Posting
from teamchat.core.engine.state import Route
from teamchat.core.errors import ExitCode, PromptTooLarge
from teamchat.core.messages import NewMessage, Routing, Speaker
from teamchat.core.receipt import Setup
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import create_session
from teamchat.core.store.texts import pack
from teamchat.core.store.turns import NewTurn, begin_turn
from teamchat.core.team.team import Member, Team
from teamchat.core.turn.events import AgentSpoke, Conclusion, Replied, TurnStarted
from teamchat.core.turn.run import Run
from teamchat.runners.events import TextDelta
from teamchat.runners.process.supervisor import Stopper

SMALL, LARGE, HUGE = 128, 1024, 10_000  # KB
MOST = 45  # times the floor: 3 s of a machine that takes 65 ms for the floor of 1 MB; most kinds take a third of that
MOST_OF_HUGE_S = 2.0
GROWTH = 1.35  # exponent; a step of eight times the size takes up to 17 times as long
END = "\n[NEXT: sarah]"
READERS = {"claude": "claire", "codex": "cody", "gemini": "sarah"}
PROMPTS = tuple(f"prompt of {vendor}" for vendor in READERS)
SHOWN = ("piped", "quiet", "json", "terminal", "streamed")
PIECE = 100  # characters of a streamed piece
TOKEN = re.compile(r"\w+|\W")


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
    "unlike backticks": unlike_runs("`"),
    "unlike backtick lines": unlike_runs("`", "\n"),
    "backticks": repeated("`"),
    "tildes": unlike_runs("~", "\n"),
    "fences": repeated("```\nx\n"),
    "fence lookalikes": repeated("``` ` \n"),
    "nested quotes": repeated(">"),
    "quote lines": repeated("> x\n"),
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
IN_BULK = ("empty markers", "backticks", "brackets", "less-than signs", "keys")

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
    """One reply of `max` with `text`, and every step that is taken with it."""

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

    def steps(self) -> dict[str, Callable[[], object]]:
        return {
            "read": self.read,
            "new": lambda: says_nothing_new(self.text, [("max", self.text + "x")], "max", 0.9),
            "store": self.store,
            **{step: partial(self.prompt, name) for step, name in zip(PROMPTS, READERS.values(), strict=True)},
            "piped": lambda: self.show(PlainOutput()),
            "quiet": lambda: QuietOutput().finish(Conclusion(ExitCode.DONE, text=self.text)),
            "json": lambda: self.show(JsonOutput("hostile")),
            "terminal": lambda: self.show(on_terminal()),
            "streamed": self.stream,
        }

    def read(self) -> None:
        self.parsed = self.posting.parse((self.team.member("max"), self.text))

    def store(self) -> None:
        with self.db.transaction():
            self.said = self.posting.reply(self.parsed[0], self.turn, Route("msg-1", "kailai", "msg-1", 1, "max"))

    def prompt(self, reader: str) -> None:
        member = self.team.member(reader)
        route = Route("msg-1", "kailai", self.said.message.id, 2, reader)
        collector = collector_of(self.team, self.db, self.session)
        with contextlib.suppress(PromptTooLarge):  # of 10 MB, once it is built
            built = build_prompt(self.team, member, route, self.manager, exists, collector=collector)
            pack(built.prepared.stdin)

    def show(self, output: Output) -> None:
        output(Replied(self.turn, self.said.message))

    def stream(self) -> None:
        """As it comes from a CLI: in pieces, then whole."""
        output = on_terminal()
        output(TurnStarted(self.turn, None))
        for at in range(0, len(self.text), PIECE):
            output(AgentSpoke("max", self.turn.number, TextDelta(self.text[at : at + PIECE])))
        self.show(output)


def on_terminal() -> TerminalOutput:
    return TerminalOutput(MEMBERS, TerminalSurface(io.FileIO(os.devnull, "w"), moves=True))


def seconds(work: Callable[[], object]) -> float:
    with Path(os.devnull).open("w") as no, contextlib.redirect_stdout(no), contextlib.redirect_stderr(no):
        began = time.process_time()
        work()
        return time.process_time() - began


def measure(text: str) -> dict[str, float]:
    """Seconds of every step, but of the prompts and of the ways to show it the slowest alone."""
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Database(Path(folder) / "teamchat.db")) as db:
        took = {name: seconds(step) for name, step in Reply(text, team_in(Path(folder)), db).steps().items()}
    slowest = [max(ways, key=lambda name: took[name]) for ways in (PROMPTS, SHOWN)]
    return {name: one for name, one in took.items() if name not in PROMPTS + SHOWN or name in slowest}


def floor(kilobytes: int) -> float:
    """Seconds of one pass over prose that makes a token of each word and space."""
    text = KINDS["prose"](kilobytes * 1000)
    return min(seconds(lambda: TOKEN.findall(text)) for _ in range(3))


def measures(quick: bool) -> Measures:
    for kind in IN_BULK if quick else KINDS:
        yield kind, partial(whole, kind, floor(LARGE))
    for kind in () if quick else IN_BULK:
        yield f"{kind}, 10 MB", partial(bulk, kind)


def of(kind: str, kilobytes: int) -> dict[str, float]:
    return measure(KINDS[kind](kilobytes * 1000) + END)


def whole(kind: str, least: float) -> Iterator[Figure]:
    """All steps with 1 MB, and the growth from 128 KB on."""
    before, took = of(kind, SMALL), of(kind, LARGE)
    yield Figure(
        name=kind, unit="s", value=sum(took.values()), floor=least, floor_is="a regular expression", bound=MOST,
        note=most_of(took),
    )  # fmt: skip
    growth = math.log(sum(took.values()) / sum(before.values())) / math.log(LARGE / SMALL)
    yield Figure(name=f"{kind}, growth", unit="", value=growth, bound=GROWTH)


def bulk(kind: str) -> Iterator[Figure]:
    took = of(kind, HUGE)
    slowest = max(took.values())
    yield Figure(name=f"{kind}, 10 MB", unit="s", value=slowest, bound=MOST_OF_HUGE_S, note=most_of(took))


def most_of(took: Mapping[str, float]) -> str:
    worst = sorted(took.items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{name} {took_s:.2f} s" for name, took_s in worst)
