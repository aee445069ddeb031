"""The keys of the prompt, besides those that every line editor has.

The terminal without the prompt, for a command, an editor or a shell.

What the keys of the prompt do, as the screen calls it.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.filters import Condition, has_selection
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.selection import SelectionState, SelectionType

from teamchat.cli.chatting.layout import Shown
from teamchat.cli.chatting.typing import Pastes
from teamchat.core.files.whole_files import temporary_folder
from teamchat.core.messages import Span, well_formed

LEAVES = "Ctrl-D leaves"
BACK_S = 0.2  # in which the prompt reads what was typed before it came back
EDITORS = ("VISUAL", "EDITOR")


def bindings(
    typist: Typist, shown: Shown, buffer: Buffer, refresh: Callable[[], None], suspend: Callable[[], None]
) -> KeyBindings:
    keys = KeyBindings()
    pastes = Pastes(buffer)
    _editing_keys(keys, buffer, pastes, shown)
    _sending_keys(keys, typist, shown, pastes, buffer, refresh)
    _leaving_keys(keys, typist, shown, pastes, buffer, refresh)

    def changed(_buffer: Buffer) -> None:
        if not buffer.text:
            typist.emptied()

    buffer.on_text_changed += changed

    @keys.add("c-z")
    def _(event: KeyPressEvent) -> None:
        event.app.create_background_task(_suspended(suspend, shown))

    return keys


def _editing_keys(keys: KeyBindings, buffer: Buffer, pastes: Pastes, shown: Shown) -> None:
    @keys.add("escape", "enter")
    def _(_event: KeyPressEvent) -> None:
        buffer.newline(copy_margin=False)

    @keys.add("tab")
    def _(_event: KeyPressEvent) -> None:
        if buffer.complete_state and buffer.complete_state.completions:
            buffer.complete_next()
            return
        found = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        if len(found) == 1:
            buffer.apply_completion(found[0])
        elif found:
            buffer.complete_state = CompletionState(buffer.document, found)
            buffer.complete_next()

    @keys.add("c-u", filter=has_selection)
    @keys.add("c-w", filter=has_selection)
    @keys.add("c-k", filter=has_selection)
    @keys.add("delete", filter=has_selection)
    def _(_event: KeyPressEvent) -> None:
        buffer.cut_selection()

    @keys.add("c-x", "c-e")
    def _(event: KeyPressEvent) -> None:
        event.app.create_background_task(_edit(pastes, shown))

    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        if buffer.selection_state:
            buffer.cut_selection()
        pastes.insert(event.data)


def _sending_keys(
    keys: KeyBindings, typist: Typist, shown: Shown, pastes: Pastes, buffer: Buffer, refresh: Callable[[], None]
) -> None:
    @keys.add("enter")
    def _(_event: KeyPressEvent) -> None:
        text, pasted = pastes.whole()
        if (readable := well_formed(text)) != text:  # bytes that are no UTF-8
            pastes.put(readable)
            text, pasted = readable, ((0, len(readable)),) if pasted else ()
        if typist.entered(text, pasted):
            if text.strip() and buffer.history.get_strings()[-1:] != [text]:
                buffer.history.append_string(text)
            pastes.put("")
            buffer.reset()
        else:
            _select_all(buffer)
        refresh()

    @keys.add("up", filter=Condition(lambda: not buffer.text and bool(shown.waiting)))
    def _(_event: KeyPressEvent) -> None:
        if queued := typist.unqueued():
            pastes.put(*queued)
        refresh()


def _select_all(buffer: Buffer) -> None:
    """Select the text: the next key replaces or removes it, and an arrow keeps it."""
    buffer.cursor_position = len(buffer.text)
    buffer.selection_state = SelectionState(0, SelectionType.CHARACTERS)
    buffer.selection_state.enter_shift_mode()


def _leaving_keys(
    keys: KeyBindings, typist: Typist, shown: Shown, pastes: Pastes, buffer: Buffer, refresh: Callable[[], None]
) -> None:
    empty = Condition(lambda: not buffer.text)

    @keys.add("c-c")
    def _(_event: KeyPressEvent) -> None:
        if typist.interrupted():
            return
        if buffer.text:
            pastes.put("")
            buffer.reset()
        else:
            shown.notice = LEAVES
        refresh()

    @keys.add(Keys.SIGINT)
    def _(_event: KeyPressEvent) -> None:
        typist.interrupted()

    @keys.add("c-d", filter=empty)
    def _(_event: KeyPressEvent) -> None:
        typist.left()

    @keys.add("c-@", filter=empty & Condition(lambda: time.monotonic() - shown.back_at < BACK_S))
    def _(_event: KeyPressEvent) -> None:
        """A Ctrl-D that was typed without the prompt: the terminal keeps it as a zero byte."""
        typist.left()


async def _suspended(do: Callable[[], None], shown: Shown) -> None:
    async with without_prompt(shown):
        do()


async def _edit(pastes: Pastes, shown: Shown) -> None:
    """Let the person edit the text in their editor. All that comes back was typed."""
    text, _ = pastes.whole()
    try:
        async with without_prompt(shown):
            edited = await asyncio.get_running_loop().run_in_executor(None, lambda: _edited(text))
    except (OSError, ValueError) as error:
        shown.notice = f"the editor cannot be run: {error}"
        return
    if edited is not None:
        pastes.put(edited)


def _edited(text: str) -> str | None:
    """The text as the person left it in the editor; None if the editor failed."""
    editor = next(filter(None, map(os.environ.get, EDITORS)), "vi")
    with temporary_folder("message") as folder:
        file = folder / "message.md"
        file.write_text(text, "utf-8", "replace")
        code = subprocess.call([*shlex.split(editor), str(file)])
        return None if code else file.read_text("utf-8", "replace").removesuffix("\n")


@asynccontextmanager
async def without_prompt(shown: Shown) -> AsyncIterator[None]:
    """Remove the prompt and show it again. What is typed meanwhile and nobody reads comes to the prompt."""
    try:
        async with in_terminal():
            yield
    finally:
        shown.back_at = time.monotonic()


class Typist(Protocol):
    """What the keys do. Every method runs in the screen's thread."""

    def began(self) -> None: ...

    def entered(self, text: str, pasted: tuple[Span, ...]) -> bool:
        """Take the text that was entered, with its pasted parts. False if it is refused."""
        ...

    def interrupted(self) -> bool:
        """Stop what runs. False if nothing runs."""
        ...

    def left(self) -> None: ...

    def unqueued(self) -> tuple[str, tuple[Span, ...]] | None:
        """Edit the message that was typed last and is not sent yet. Returns its text and the pasted parts."""
        ...

    def emptied(self) -> None:
        """The prompt is empty: a message that was edited there is removed."""
        ...

    def ended(self, error: BaseException | None) -> None: ...
