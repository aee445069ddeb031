"""Renders terminal output into lines without a scrollback limit.

It is a terminal for programs that print lines, and repaint at most the last few of them. Lines never wrap and never
scroll away. Colours, titles and similar sequences are ignored. One character is one column, and a tab stays a tab.
"""

from __future__ import annotations

import codecs
import re

from teamchat.patterns import regex

ROWS, COLUMNS = 100, 10_000  # the size that programs see: too wide to wrap; prompt_toolkit draws every row
LONGEST_SEQUENCE = 4096  # a longer one is not an escape sequence

_TOKEN = regex(
    r"\x1b\[([0-?]*)[ -/]*([@-~])"  # CSI: movements, erasures, modes
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC and similar sequences: titles, links, colours
    r"|\x1b[ -/]*([0-OQ-WYZ\\`-~])"
    r"|([\x00-\x1a\x1c-\x1f\x7f-\x9f])"
    r"|([^\x00-\x1f\x7f-\x9f]+)"
)
_BEGUN = regex(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)\Z")
_BRACKETED_PASTE = "?2004"


class Screen:
    """The lines of a terminal, with its cursor.

    `row` and `column` are where the cursor stands; `rows` are the lines so far, the cursor's among them. `pastes`: the
    program has asked that pasted text come in brackets. `answers` are the answers that the program waits for (it may
    ask where the cursor is). `size` is about the largest number of characters that it has held so far.
    """

    def __init__(self) -> None:
        self.rows = [""]
        self.row = self.column = 0
        self.pastes = False
        self.answers: list[bytes] = []
        self.size = 0
        self._top = 0
        self._saved = (0, 0)
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def line(self) -> str:
        """The cursor's line, up to the cursor, which may be after its end."""
        return self.rows[self.row][: self.column].ljust(self.column)

    def since(self, mark: tuple[int, int]) -> list[str]:
        """Return the lines from that row and column to the cursor; one empty line when the cursor stands before it."""
        row, column = mark
        if (self.row, self.column) < mark:
            return [""]
        lines = [*self.rows[row : self.row], self.line]
        return [lines[0][column:], *lines[1:]]

    def feed(self, data: bytes) -> None:
        """Print the program's output; characters and escape sequences may come in pieces."""
        text = self._rest + self._decoder.decode(data)
        at = 0
        while at < len(text):
            if match := _TOKEN.match(text, at):
                self._print(match)
                at = match.end()
            elif len(text) - at < LONGEST_SEQUENCE and _BEGUN.match(text, at):
                break
            else:
                at += 1  # an escape that begins nothing
        self._rest = text[at:]

    def _print(self, found: re.Match[str]) -> None:
        parameters, command, escape, control, text = found.groups()
        if text:
            self._put(text)
        elif control:
            match control:
                case "\r":
                    self.column = 0
                case "\n" | "\v" | "\f":
                    self._down(1)
                case "\b":
                    self.column = max(self.column - 1, 0)
                case "\t":
                    self._put("\t")
        elif command:
            self._command(command, parameters)
        elif escape:
            match escape:
                case "7":
                    self._saved = (self.row, self.column)
                case "8":
                    self.row, self.column = self._saved
                case "D":
                    self._down(1)
                case "E":
                    self._down(1)
                    self.column = 0
                case "M":
                    self._up(1)

    def _put(self, text: str) -> None:
        row, self.rows[self.row] = self.rows[self.row], ""  # held only here it grows in place, in linear time
        end = self.column + len(text)
        self.size += max(end - len(row), 0)
        row = row.ljust(self.column)
        if self.column == len(row):
            row += text
        else:
            row = row[: self.column] + text + row[end:]
        self.rows[self.row], self.column = row, end

    def _down(self, count: int) -> None:
        self.row += count
        more = max(self.row + 1 - len(self.rows), 0)
        self.rows += [""] * more
        self.size += more

    def _up(self, count: int) -> None:
        self.row = max(self.row - count, self._first)

    @property
    def _first(self) -> int:
        """The first row that a screen of this height would show."""
        return max(self._top, len(self.rows) - ROWS)

    def _command(self, command: str, written: str) -> None:
        numbers = [int(number) if number.isdecimal() else 0 for number in written[:50].split(";")]
        first, count = numbers[0], max(numbers[0], 1)
        match command:
            case "H" | "f" | "d":
                self.row = self._first
                self._down(min(count, ROWS) - 1)
                if command != "d":
                    column = numbers[1] if len(numbers) > 1 else 1
                    self.column = min(max(column, 1), COLUMNS) - 1
            case "J" | "K" | "P" | "X" | "@":
                self._edit(command, first, count)
            case "h" | "l" if written == _BRACKETED_PASTE:
                self.pastes = command == "h"
            case "n" if written == "6":
                self.answers.append(f"\x1b[{self.row - self._first + 1};{self.column + 1}R".encode())
            case "c" if written in {"", "0"}:
                self.answers.append(b"\x1b[?6c")
            case _:
                self._move(command, count)

    def _move(self, command: str, count: int) -> None:
        match command:
            case "A" | "F":
                self._up(count)
            case "B" | "E":
                self._down(min(count, self._first + ROWS - 1 - self.row))
            case "C":
                self.column = max(self.column, min(self.column + count, COLUMNS))
            case "D":
                self.column = max(self.column - count, 0)
            case "G" | "`":
                self.column = min(count, COLUMNS) - 1
        if command in "EF":
            self.column = 0

    def _edit(self, command: str, first: int, count: int) -> None:
        row, at = self.rows[self.row], self.column
        match command, first:
            case "J", 0:
                del self.rows[self.row + 1 :]
                row = row[:at]
            case "J", 2 | 3:
                # a cleared screen is a new sheet below the old text; the cursor keeps its place on it
                place = self.row - self._first
                self._top = len(self.rows)
                self.row = self._top - 1
                self.rows.append("")
                self._down(place + 1)
                return
            case "K", 0:
                row = row[:at]
            case "K", 1:
                row = " " * min(at + 1, len(row)) + row[at + 1 :]
            case "K", 2:
                row = ""
            case "P", _:
                row = row[:at] + row[at + count :]
            case "X", _:
                row = row[:at] + " " * min(count, max(len(row) - at, 0)) + row[at + count :]
            case "@", _:
                row = row[:at] + " " * min(count, COLUMNS) + row[at:] if at < len(row) else row
        self.size += max(len(row) - len(self.rows[self.row]), 0)
        self.rows[self.row] = row
