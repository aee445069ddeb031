"""The prompt at the bottom of the terminal, in a thread of its own, so that it answers while members work.

`typed_early` reads what a person typed or pasted before the prompt was there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import select
import signal
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import to_filter
from prompt_toolkit.history import History
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output

from teamchat.cli.chatting.keys import ALONE, ChatKeys, bindings, without_prompt
from teamchat.cli.chatting.layout import CHROME, ChatLines, layout_of
from teamchat.cli.output.terminal.look import named_light
from teamchat.core.text.clean import clean
from teamchat.patterns import regex

EARLY = "typed before the prompt was there; Enter sends it"
STOP_S = 0.5  # the longest wait from Ctrl-Z to the stop; without a shell nothing stops
FLUSH_S = 0.03  # between two writings above the prompt
AS_IT_WAS = b"\x1b[?2004l\x1b[?25h\x1b[m\r\n\x1b[J"  # no marked pastes, a cursor, no colours, a line of its own
ALONE_S = 0.1  # how long after an Esc nothing must follow; on a slow line the bytes of an arrow key come so late
NARROWEST, WIDEST = 20, 300
SIZE = Size(24, 80)  # assumed for a terminal that does not report its size


class ChatTerminal(Vt100Input):
    """The keys of a terminal, where an Esc that nothing follows for `ALONE_S` is the key `ALONE`."""

    _before = 0  # how many Escs came last, of which another one told that they begin nothing

    def read_keys(self) -> list[KeyPress]:
        keys = super().read_keys()
        others = [number for number, key in enumerate(keys, 1) if key.key != Keys.Escape]
        self._before = len(keys) - max(others, default=0)
        return keys

    def flush_keys(self) -> list[KeyPress]:
        keys = super().flush_keys()
        if [key.key for key in keys] != [Keys.Escape]:
            return keys
        return [KeyPress(ALONE, ""), *[KeyPress(ALONE, "")] * self._before]


@dataclass
class ChatScreen:
    """`shown` is what the lines around the prompt say. `call` lets the screen's thread do something."""

    typist: ChatKeys
    shown: ChatLines
    history: History
    completer: Completer
    app: Application[None] = field(init=False)
    _above: list[str | None] = field(default_factory=list)  # lines after a None are held
    _flushing: bool = False
    _up: Event = field(default_factory=Event)  # the prompt is on the screen
    _done: Event = field(default_factory=Event)
    _continued: Event = field(default_factory=Event)
    _loop: asyncio.AbstractEventLoop | None = None
    light: bool | None = field(init=False, default=None)  # the terminal's background, if it says

    def __post_init__(self) -> None:
        self.buffer = Buffer(
            completer=self.completer, complete_while_typing=to_filter(True), history=self.history, multiline=True
        )
        reads, writes = open(0, closefd=False), open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 (stay open)
        self._modes = termios.tcgetattr(0)
        self._input = ChatTerminal(reads)
        self._output = Vt100_Output(writes, self._terminal_size, os.environ.get("TERM"), enable_cpr=False)
        self._thread = Thread(target=self._run, name="prompt", daemon=True)

    # --- for any thread

    def start(self) -> None:
        """Show the prompt. Returns when it takes keys. It begins with the text typed before."""
        early, self.light = typed_early(asking=answers(os.environ))
        if early:
            self.buffer.document = Document(early, len(early))
            self.shown.notice = EARLY
        self._thread.start()
        self._up.wait()

    def stop(self) -> None:
        """Remove the prompt and leave the terminal as it was."""
        self.call(lambda: self.app.exit() if self.app.is_running and not self.app.is_done else None)
        self._thread.join()

    def call(self, do: Callable[[], object]) -> None:
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the program has just ended
                loop.call_soon_threadsafe(do)

    def refresh(self) -> None:
        self.call(self._redraw)

    def hold(self) -> None:
        """Let lines that are written from now on wait for the next `update`."""
        self._above.append(None)

    def update(self, do: Callable[[], object]) -> None:
        """Let the screen's thread do something, and show it together with the lines written so far."""

        def both() -> None:
            do()
            if None in self._above:
                self._above.remove(None)
            self._flush()

        self.call(both)

    def resized(self) -> None:
        """Draw for the terminal's new size."""
        self.call(lambda: None if self.app._running_in_terminal else self.app._on_resize())  # noqa: SLF001

    def continued(self) -> None:
        """Note that a shell has continued the process after Ctrl-Z."""
        self._continued.set()

    def restore(self) -> None:
        """Leave the terminal as it was, without waiting for the screen's thread or the terminal."""
        with contextlib.suppress(termios.error):
            termios.tcsetattr(0, termios.TCSANOW, self._modes)
        with contextlib.suppress(OSError):
            if select.select((), (1,), (), 0)[1]:
                os.write(1, AS_IT_WAS)

    @property
    def visible(self) -> bool:
        return self._up.is_set()

    @property
    def width(self) -> int:
        return max(NARROWEST, min(self._size()[0], WIDEST))

    @property
    def height(self) -> int:
        return max(1, self._size()[1] - CHROME - len(self.shown.queued()) - bool(self.shown.images))

    def write(self, text: str) -> None:
        """Add finished lines above the prompt."""
        self._above.append(text)
        self.call(self._flush_soon)

    def show(self, lines: Sequence[str]) -> None:
        """Replace the changing lines above the prompt."""
        if (live := tuple(lines)) != self.shown.live:
            self.shown.live = live
            self.refresh()

    def hide(self) -> None:
        """Remove the prompt: the terminal belongs to the calling thread until `unhide`."""
        hidden, self._done = Event(), Event()
        done = self._done

        async def run() -> None:
            async with without_prompt(self.shown):
                self._up.clear()
                self._write_above()
                hidden.set()
                while not done.is_set():  # noqa: ASYNC110 (another thread sets it)
                    await asyncio.sleep(0.01)
            self._up.set()
            self._flush()

        task = run()
        self.call(lambda: self.app.create_background_task(task))
        while self._thread.is_alive() and not hidden.wait(0.1):
            pass

    def unhide(self) -> None:
        sys.stdout.flush()
        self._done.set()
        while self._thread.is_alive() and not self._up.wait(0.1):
            pass

    # --- in the screen's thread

    def run_hidden(self, do: Callable[[], object]) -> None:
        """Let the screen's thread do something that uses the terminal."""

        async def run() -> None:
            async with without_prompt(self.shown):
                self._up.clear()
                self._write_above()
                do()
                sys.stdout.flush()
            self._up.set()
            self._flush()

        self.app.create_background_task(run())

    def _suspend(self) -> None:
        """Stop the process group, as Ctrl-Z does in a program without a prompt, and return when it is continued.

        The signal may reach another thread. Without the wait this one would set the terminal's modes before the stop,
        and the shell would reset them.
        """
        self._continued.clear()
        os.kill(0, signal.SIGTSTP)
        self._continued.wait(STOP_S)

    def _size(self) -> tuple[int, int]:
        size = self._terminal_size()
        return size.columns, size.rows

    def _terminal_size(self) -> Size:
        try:
            columns, rows = os.get_terminal_size(1)
        except OSError:
            columns = rows = 0
        return Size(rows or SIZE.rows, columns or SIZE.columns)

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            asyncio.run(self._prompt())
        except EOFError:
            self.typist.left()
        except BaseException as raised:  # noqa: BLE001 (the main thread raises it)
            error = raised
        finally:
            self._loop = None
            self._up.set()
            self.typist.ended(error)

    async def _prompt(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.typist.began()
        self.app = Application(
            layout=layout_of(self.shown, self.buffer),
            key_bindings=bindings(self.typist, self.shown, self.buffer, self.refresh, self._suspend),
            input=self._input,
            output=self._output,
            erase_when_done=True,
            terminal_size_polling_interval=None,  # the main thread is told
        )
        self.app.ttimeoutlen = ALONE_S
        self.app.key_processor.before_key_press += lambda _: self._clear_notice()
        failed: list[BaseException] = []

        def fail(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            failed.append(context.get("exception") or RuntimeError(str(context.get("message"))))
            if self.app.is_running and not self.app.is_done:
                self.app.exit()

        self._loop.set_exception_handler(fail)
        await self.app.run_async(pre_run=self._up.set, set_exception_handler=False, handle_sigint=False)
        while None in self._above:
            self._above.remove(None)
        self._write_above()
        if failed:
            raise failed[0]

    def _clear_notice(self) -> None:
        self.shown.notice = ""

    def _redraw(self) -> None:
        """Draw again. Fewer lines than before leave no gap."""
        if self.app.is_running and not self.app._running_in_terminal:  # noqa: SLF001
            before = self.app.renderer.last_rendered_screen
            if before and before.height > self._preferred_height():
                self.app.renderer.erase()
            self.app.invalidate()

    def _preferred_height(self) -> int:
        columns, rows = self._size()
        return min(rows, self.app.layout.container.preferred_height(columns, rows).preferred)

    def _flush_soon(self) -> None:
        if not self._flushing and self._loop:
            self._flushing = True
            self._loop.call_later(FLUSH_S, self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if not self.app.is_running or self.app._running_in_terminal:  # noqa: SLF001
            return  # who hides the prompt writes it
        self.app.renderer.erase()
        self._write_above()
        self.app._redraw()  # noqa: SLF001

    def _write_above(self) -> None:
        """Write the waiting lines above the prompt. Only this thread takes lines out; others add some meanwhile."""
        while self._above and (text := self._above[0]) is not None:
            self._output.write_raw(text)
            del self._above[0]
        self._output.flush()


QUIET_S = 0.05  # the text is over when no byte comes for so long
CHUNK = 65536


ANSWER_S = 0.5  # how long a terminal may take to answer
ASKS = b"\x1b]11;?\x1b\\\x1b[c"
"""What colour is the background? What are you? Every terminal answers the second question, many only that one."""
_BACKGROUND = regex(rb"\x1b\]11;rgba?:([0-9a-f]+)/([0-9a-f]+)/([0-9a-f]+)[^\x07\x1b]*(?:\x07|\x1b\\)", re.IGNORECASE)
_KIND = regex(rb"\x1b\[\?[\d;]*c")
_ANSWERING = ("iTerm.app", "Apple_Terminal", "WezTerm", "ghostty", "vscode")  # TERM_PROGRAM


def answers(env: Mapping[str, str]) -> bool:
    """Whether to ask the terminal for its background: a local one that is known to answer, and nothing else says it.

    An answer from far away would come late, as keys.
    """
    known = env.get("TERM_PROGRAM") in _ANSWERING or any(
        map(env.get, ("VTE_VERSION", "KITTY_WINDOW_ID", "ALACRITTY_LOG"))
    )
    return known and named_light(env) is None and not any(map(env.get, ("TMUX", "STY", "SSH_TTY", "NO_COLOR")))


def typed_early(*, asking: bool = False) -> tuple[str, bool | None]:
    """Read the text that waits at the terminal, without keys such as arrows, and whether the background is light.

    Nobody saw a prompt then, so its lines are not separate messages. Without `asking` the terminal is not asked for its
    background.
    """
    modes = termios.tcgetattr(0)
    by_key = [*modes[:3], modes[3] & ~(termios.ICANON | termios.ECHO), *modes[4:]]
    termios.tcsetattr(0, termios.TCSANOW, by_key)  # or a line without its end would wait
    typed = bytearray()
    try:
        if asking:
            os.write(1, ASKS)
        until = time.monotonic() + (ANSWER_S if asking else 0)
        while not _KIND.search(typed) and (left := until - time.monotonic()) > 0 and _waits(left):
            typed += os.read(0, CHUNK)
        while _waits(QUIET_S if _without_answers(typed) else 0) and (piece := os.read(0, CHUNK)):
            typed += piece
    finally:
        termios.tcsetattr(0, termios.TCSANOW, modes)
    said = _BACKGROUND.search(typed)
    text = clean(_without_answers(typed).decode(errors="replace")).rstrip("\n")
    return text, None if said is None else _is_light(*said.groups())


def _without_answers(typed: bytes | bytearray) -> bytes:
    return _KIND.sub(b"", _BACKGROUND.sub(b"", typed))


def _waits(seconds: float) -> bool:
    return bool(select.select((0,), (), (), seconds)[0])


def _is_light(*parts: bytes) -> bool:
    """Whether a colour is light, by its red, green and blue, each of one to four hexadecimal digits."""
    red, green, blue = (int(part, 16) / int("f" * len(part), 16) for part in parts)
    return 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
