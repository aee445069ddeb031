"""The typist: a small process that sits at the terminal of a program which has no other way in.

The guardian starts it in the agent's place and it starts the program, so the guardian's tree stays whole, and an
expensive `prompt_pattern` costs only this process's time. As an agent CLI does, it reads the whole prompt on stdin and
writes one JSON object a line: `seen` (a sign of life), `ready`, `text` (as it comes), `note`, `answer`, `failed`.

It waits for the program's prompt, pastes as a terminal would (in brackets if the program has asked for that, else as
one line), and has the answer when the prompt is there again: never because of a silence. A prompt is the whole line of
the cursor, and counts when nothing follows it for an instant; the same words in a longer line do not.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Sequence

from teamchat.runners.terminal.tty import TICK_S, Failed, Stopped, Tty

SETTLE_S = 0.3  # how long the prompt must stand there; programs write it at once
ECHO_S = 0.15  # silence after typing, once its echo is complete or there is none
SLOW_ECHO_S = 1.0  # the same with part of the echo, or the program's own text: it may be busy, or pause in long lines
LONGEST_ECHO_S = 60.0
LEAVE_S = 2.0  # how long the program may take to leave; half of it again after its terminal was hung up
SEEN_S = 1.0
MAX_PROMPT = 1000  # characters of a line that are looked at: a pattern's cost grows with them
END_OF_FILE = b"\x04"  # ends an empty line's input, for the system's line editing, readline and their like


class Typist:
    """One dialogue: the program's prompt, ours, its answer and its end."""

    def __init__(self, pattern: str, submit: str, leave: str | None, ready_s: float, argv: list[str]) -> None:
        self.pattern = re.compile(pattern)
        self.submit, self.leave, self.ready_s = submit.encode(), leave, ready_s
        self.mark = (0, 0)
        self.told = (0, 0)  # where the reported part of the answer ends
        self.has_told = False
        self.seen_at = 0.0
        self.tty = Tty(argv, self.seen)
        self.screen = self.tty.screen

    def run(self, prompt: str) -> None:
        until = time.monotonic() + self.ready_s
        while not self._stands():
            if time.monotonic() > until:
                raise Failed("timeout", f"showed no prompt in its first {self.ready_s:g} s: {self.no_prompt()}")
            self.tty.listen(TICK_S)
        tell("ready")
        self._type(prompt)
        while not self._stands():
            quiet = not self.tty.listen(TICK_S)
            self.tell_text(open_line=quiet)
        tell("answer", text=self._text())
        with contextlib.suppress(Stopped):
            self._leave()

    def stop(self, *_: object) -> None:
        self.tty.stopped = True

    def _stands(self) -> bool:
        """Whether the prompt is there and nothing follows it."""
        return self._prompt() is not None and not self.tty.listen(SETTLE_S)

    def _line(self) -> str:
        """Return the part of the cursor's line before the cursor that came after the mark."""
        row, column = self.mark
        if (self.screen.row, self.screen.column) < self.mark:
            return ""
        return self.screen.line[column if self.screen.row == row else 0 :]

    def _prompt(self) -> re.Match[str] | None:
        """Find the prompt, if it is all that stands before the cursor in its line."""
        line = self._line()
        tail = line[-MAX_PROMPT:]
        if not tail or (tail != line and "answer" not in self.pattern.groupindex):
            return None
        return self.pattern.fullmatch(tail) or self.pattern.fullmatch(tail.rstrip(" "))

    def no_prompt(self) -> str:
        return f"no line matched prompt_pattern {self.pattern.pattern!r}; the last one is {self.tty.last_line()!r}"

    def _type(self, prompt: str) -> None:
        lines = prompt.strip("\n").split("\n")
        begin = (self.screen.row, self.screen.column)
        if self.screen.pastes:
            self.tty.send(b"\x1b[200~" + "\r".join(lines).encode() + b"\x1b[201~")
        else:
            if len(lines) > 1:
                tell("note", text="typed as one line: the program has not asked for pasted text")
            # a tab is not text if the program itself edits the line: it completes words
            self.tty.send(" ".join(lines).replace("\t", " ").encode())
        self._await_echo(prompt, begin)
        if (self.screen.row, self.screen.column) == begin:
            self.screen.feed(b"\r\n")  # nothing is echoed, so Enter is not; what a person would see begins a new line
        self.mark = self.told = (self.screen.row, self.screen.column)
        self.tty.send(self.submit)

    def _await_echo(self, prompt: str, begin: tuple[int, int]) -> None:
        """Wait until the program has shown the typed text, which precedes the answer; many programs show nothing."""
        typed = "".join(prompt.split())
        until = time.monotonic() + LONGEST_ECHO_S
        while time.monotonic() < until:
            if self.tty.listen(ECHO_S):
                continue
            shown = "".join("".join(self.screen.since(begin)).split())
            awaited = not shown.endswith(typed) if shown else self.screen.pastes or self.tty.edits_itself
            if not awaited or not self.tty.listen(SLOW_ECHO_S):
                return

    def _text(self) -> str:
        """Return the answer so far, without the prompt and the spaces at the ends of lines, which no terminal shows."""
        *lines, last = self.screen.since(self.mark)
        match = self._prompt()
        lines.append(last if match is None else self._before_prompt(last, match))
        return "\n".join(line.rstrip() for line in lines).strip("\n")

    def _before_prompt(self, line: str, found: re.Match[str]) -> str:
        """Return the text before the prompt in its line: the pattern's group `answer`; empty without that group."""
        if "answer" not in self.pattern.groupindex:
            return ""
        return line[: max(len(line) - MAX_PROMPT, 0)] + (found["answer"] or "")

    def _leave(self) -> None:
        """Tell the program to end; then hang up. The guardian ends a program that is still there then."""
        keys = END_OF_FILE if self.leave is None else self.leave.encode() + self.submit
        relimited = self.tty.relimit()
        if self.tty.ends_after(keys, SETTLE_S if relimited else LEAVE_S):
            return
        # a read that began without line editing takes no end of file, but the next one does
        if relimited and self.tty.ends_after(self.submit + keys, LEAVE_S):
            return
        tell("note", text="did not end after its answer, and was hung up (exit in the team file says how to end it)")
        self.hang_up()

    def hang_up(self) -> None:
        self.tty.hang_up(LEAVE_S / 2)

    def seen(self) -> None:
        if (now := time.monotonic()) - self.seen_at > SEEN_S:
            self.seen_at = now
            tell("seen")

    def tell_text(self, *, open_line: bool) -> None:
        """Report the new text of the answer, with the line that is still being written only if `open_line`."""
        row, column = self.told
        pieces = []
        while row < self.screen.row:
            pieces.append(self.screen.rows[row][column:].rstrip() + "\n")
            row, column = row + 1, 0
        if open_line and row == self.screen.row and self.screen.column > column:
            pieces.append(self.screen.line[column:])
            column = self.screen.column
        self.told = (row, column)
        text = "".join(pieces)
        if not self.has_told:
            text = text.lstrip("\n")
        if text:
            self.has_told = True
            tell("text", text=text)


def tell(event: str, **values: str) -> None:
    line = json.dumps({"type": event, **values}).encode() + b"\n"
    while line:
        line = line[os.write(1, line) :]


def main(arguments: Sequence[str]) -> None:
    """Run the typist. `arguments` are the settings as JSON, and the program's command line."""
    settings, *argv = arguments
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        typist = Typist(**json.loads(settings), argv=argv)
    except Failed as failed:
        tell("failed", kind=failed.kind, reason=failed.reason)
        return
    signal.signal(signal.SIGTERM, typist.stop)
    code = 1
    try:
        typist.run(prompt)
        code = 0
    except Failed as failed:
        typist.tell_text(open_line=True)
        tell("failed", kind=failed.kind, reason=failed.reason)
        typist.hang_up()
    except Stopped:
        typist.tell_text(open_line=True)
        if typist.seen_at:  # else the clock says it all, and a note would pass for the program's first byte
            tell("note", text=typist.no_prompt())
        typist.hang_up()
    os._exit(code)  # pexpect would try once more to end the program; that is the guardian's
