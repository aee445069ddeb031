"""Records a `teamchat chat` with the real CLIs and a scripted model. Run by `make record-chat`.

kai types at a real terminal. What chat drew, and when, becomes `examples/chat.cast`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pexpect

from teamchat.core.files.folders import STORE_NAME
from teamchat.core.store.database import Database
from teamchat.core.store.turns import turns_of
from tests.program import ROOT
from tests.real import clis
from tests.real.model.replies import Reply, Request, Tokens, ToolUse
from tests.real.model.server import ModelServer
from tests.real.record_demo import APPROVED, FIRST, PLAN, SECOND, TEAM, WRITTEN, spoken
from tests.screens import Screen

CAST = ROOT / "examples" / "chat.cast"
COLUMNS, ROWS = 100, 32
TIMEOUT_S = 60.0  # for one answer, on a busy machine
KEY_S = 0.045
READING_S = 1.5
MOST_S = 2.0  # the longest pause of the recording
LAST_S = 3.0  # how long the last frame stays
JOINED_S = 0.01  # what is drawn within this time is one event
SESSION = "slug-addresses"

FOUND = (
    'One thing breaks: `slug("Crème brûlée")` gives `cr-me-br-l-e`. Take the accents off first, with '
    "`unicodedata.normalize`."
)
FIXED = (
    'Right. Now `slug("Crème brûlée")` gives `creme-brulee`, and the doctests have both titles.\n\n'
    "One question: a title without any letter gives an empty slug. Shall that be `untitled`?\n\n[NEXT: kai]"
)
NAMED = "Done: a title without any letter gives `untitled`. All doctests pass."
TESTS = """*** Begin Patch
*** Add File: slug.txt
+>>> from slug import slug
+>>> slug("Hello, World!")
+'hello-world'
+>>> slug("Crème brûlée")
+'creme-brulee'
*** End Patch"""
THIRD = """*** Begin Patch
*** Update File: slug.py
@@
-    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
+    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-") or "untitled"
*** Update File: slug.txt
@@
 >>> slug("Crème brûlée")
 'creme-brulee'
+>>> slug("???")
+'untitled'
*** End Patch"""
CHECK = "python3 -m doctest slug.txt && echo ok"


@dataclass
class Tape:
    """What the terminal got, and when: seconds since the begin of the recording."""

    began: float = field(default_factory=time.time)
    events: list[tuple[float, str, str]] = field(default_factory=list)

    def write(self, text: str) -> None:
        at = time.time() - self.began
        if self.events and at - self.events[-1][0] < JOINED_S:
            before, _, drawn = self.events.pop()
            at, text = before, drawn + text
        self.events.append((at, "o", text))

    def flush(self) -> None: ...

    def mark(self, at: float, name: str) -> None:
        self.events.append((at - self.began, "m", name))

    def lines(self) -> Iterator[str]:
        """The asciicast, with the long pauses shortened."""
        head = {
            "version": 2,
            "width": COLUMNS,
            "height": ROWS,
            "title": "teamchat chat",
            "env": {"TERM": "xterm-256color"},
        }
        yield json.dumps(head)
        before = now = 0.0
        for at, kind, text in sorted(self.events):
            now += min(max(at - before, 0), MOST_S)
            before = at
            yield json.dumps([round(now, 3), kind, text], ensure_ascii=False)
        yield json.dumps([round(now + LAST_S, 3), "o", ""])


@dataclass
class Person:
    """Types, and reads what stands on the screen."""

    screen: Screen

    def types(self, text: str) -> None:
        for key in text:
            self.screen.child.send(key)
            self.reads(KEY_S)

    def enters(self, text: str) -> None:
        self.types(text)
        self.reads(0.4)
        self.screen.child.send("\r")

    def reads(self, seconds: float = READING_S) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.screen.read(left)

    def waits(self, holds: Callable[[str], object]) -> None:
        end = time.monotonic() + TIMEOUT_S
        while not holds(self.screen.text):
            assert self.screen.read(), f"chat has ended:\n{self.screen.text}"
            assert time.monotonic() < end, f"the screen did not come to this:\n{self.screen.text}"


def paid(reply: Reply, tokens: int, cached: int) -> Reply:
    """The reply of a model that has read as many tokens as a real one would have."""
    return Reply(
        reply.text,
        tools=reply.tools,
        delay_s=reply.delay_s,
        tokens=Tokens(tokens, cached, 60 + len(str(reply.text)) // 4),
    )


def script(server: ModelServer, queued: Event) -> None:
    """What the members answer. The review takes until the person's next message is queued."""

    def uses(name: str, **given: object) -> Reply:
        return Reply(tools=(ToolUse(name, given),), delay_s=0.5)

    def after_queued(first: Reply, last: Reply) -> Callable[[Request], Reply]:
        replies = iter((first,))

        def answer(_request: Request) -> Reply:
            if reply := next(replies, None):
                return reply
            queued.wait(TIMEOUT_S)
            return last

        return answer

    server.script("claude", after_queued(paid(spoken(PLAN), 17_950, 16_400), paid(spoken(APPROVED), 19_120, 17_900)))
    server.script(
        "codex",
        [
            paid(uses("apply_patch", input=FIRST), 9_300, 8_100),
            paid(
                uses("exec_command", cmd="python3 -c \"from slug import slug; print(slug('Hello, World!'))\""),
                9_600,
                9_300,
            ),
            paid(spoken(WRITTEN), 9_800, 9_600),
            paid(uses("apply_patch", input=SECOND), 10_900, 9_800),
            paid(uses("apply_patch", input=TESTS), 11_300, 10_900),
            paid(uses("exec_command", cmd=CHECK), 11_500, 11_300),
            paid(spoken(FIXED), 11_700, 11_500),
            paid(uses("apply_patch", input=THIRD), 12_400, 11_700),
            paid(uses("exec_command", cmd=CHECK), 12_700, 12_400),
            paid(spoken(NAMED), 12_900, 12_700),
        ],
    )
    server.script(
        "gemini",
        after_queued(paid(uses("read_file", file_path="slug.py"), 8_700, 0), paid(spoken(FOUND), 9_050, 8_700)),
    )


def talk(person: Person, queued: Event) -> None:
    """The conversation, as kai has it."""
    person.waits(lambda text: "›" in text)
    person.reads()
    person.enters("@max We need readable addresses for our posts.")
    person.waits(lambda text: "max  " in text and "carol  " in text and "Please look at it" in text)
    person.waits(lambda text: text.count("thinking") == 2)
    person.enters("@sarah Fix what carol finds, and write doctests.")
    person.waits(lambda text: "queued: " in text)
    person.reads(2 * READING_S)
    queued.set()
    person.waits(lambda text: "you → sarah   " in text.split("untitled")[-1])
    person.reads(2 * READING_S)
    person.enters("Yes, untitled.")
    person.waits(lambda text: "All doctests pass" in text and "›" in text.split("All doctests pass")[1])
    person.waits(lambda text: "thinking" not in text.split("All doctests pass")[1])
    person.reads()
    person.enters("/diff")
    person.reads(2 * READING_S)
    person.screen.child.send("\x04")
    person.screen.to_the_end()


@contextmanager
def at_terminal(work: Path, env: Mapping[str, str], tape: Tape) -> Iterator[Screen]:
    chat = ["-m", "teamchat", "chat", "--trust", "--session", SESSION, "--new"]
    child = pexpect.spawn(
        sys.executable, chat, cwd=work, env=env, dimensions=(ROWS, COLUMNS), echo=False, encoding="utf-8"
    )
    child.logfile_read = tape
    child.delaybeforesend = None
    try:
        yield Screen(child, COLUMNS, ROWS)
    finally:
        child.close(force=True)


def repository(work: Path, env: Mapping[str, str]) -> None:
    """The person's files: a git repository with one commit."""
    (work / "teamchat.toml").write_text(TEAM, encoding="utf-8")
    (work / ".gitignore").write_text("__pycache__/\n", encoding="utf-8")
    who = ("-c", "user.name=kai", "-c", "user.email=kai@example.org")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "Begin")):
        subprocess.run(["git", *words], cwd=work, env=dict(env), check=True)


def main() -> None:
    programs = clis.installed(clis.PINNED)
    queued = Event()
    with tempfile.TemporaryDirectory(prefix="chat-") as folder, ModelServer() as server:
        work, state = Path(folder) / "home" / "blog", Path(folder) / "state"
        work.mkdir(parents=True)
        env = clis.environment(work.parent, server.url, programs)
        env |= {"TEAMCHAT_HOME": str(state), "TERM": "xterm-256color", "NO_COLOR": "", "LOGNAME": "kai"}
        repository(work, env)
        script(server, queued)
        tape = Tape()
        with at_terminal(work, env, tape) as screen:
            talk(Person(screen), queued)
        (store,) = state.rglob(STORE_NAME)
        db = Database(store)
        for turn in turns_of(db, 1):
            tape.mark(turn.started_at, f"turn {turn.number}: {turn.member}")
        db.close()
        recorded = "\n".join((*tape.lines(), ""))
    for part in (folder, str(clis.CACHE), str(ROOT)):
        assert part not in recorded, part
    CAST.write_text(recorded, encoding="utf-8")


if __name__ == "__main__":
    main()
