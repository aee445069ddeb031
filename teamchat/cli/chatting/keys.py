"""The keys of the prompt, besides those that every line editor has.

`without_prompt` gives the terminal to a command, an editor or a shell. The keys call `ChatKeys`.
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

from msgspec import Struct
from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.filters import Condition, Filter, has_selection, is_searching
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.search import stop_search
from prompt_toolkit.selection import SelectionState, SelectionType

from teamchat.cli.chatting.layout import ChatLines
from teamchat.cli.chatting.pastes import Pastes
from teamchat.core.files.whole_files import temporary_folder
from teamchat.core.messages import Span, well_formed
from teamchat.runners.environment import for_child

LEAVES = "Ctrl-D leaves"
BACK_S = 0.2  # how long the prompt reads keys typed before it came back
EDITORS = ("VISUAL", "EDITOR")
ALONE = "\x1b"
"""The key for Esc alone. `Keys.Escape` also begins the sequences that terminals send for Alt with another key."""
NEW_LINE = ("\x1b[27;2;13~", "\x1b[27;5;13~", "\x1b[27;6;13~")
"""Enter with Shift or Ctrl, as a terminal sends it; prompt_toolkit 3.0 takes it for Enter. It does not know
`ESC[13;2u`, which therefore comes as single keys."""
MODIFIERS = "2345678"  # the modifiers in `ESC[13;2u`: each includes Shift, Alt or Ctrl
OF_OTHERS = {
    "s-tab": "what members may do is in the team file: /team shows it",
    "c-v": "paste with your terminal's own key; an image goes by its path, as @image.png",
    "c-b": "in the background: nohup teamchat send '...' &, and teamchat watch shows it",
}
"""Keys known from other programs, and how to do the same here."""
COMMANDS = {"c-t": "/todo", "c-o": "/show"}
"""Keys that run a command, whatever text is in the prompt."""


class Prompt(Struct, frozen=True):
    """The parts of chat that its keys use. `refresh` draws the prompt again, `suspend` stops chat like Ctrl-Z."""

    typist: ChatKeys
    shown: ChatLines
    buffer: Buffer
    pastes: Pastes
    refresh: Callable[[], None]
    suspend: Callable[[], None]

    def clear(self) -> None:
        self.pastes.put("")
        self.buffer.reset()

    @property
    def empty(self) -> Filter:
        return Condition(lambda: not self.buffer.text) & ~is_searching

    @property
    def continued(self) -> Filter:
        """Enter begins a new line: behind a backslash, and behind an Esc that came slowly before it."""
        behind = Condition(lambda: self.buffer.document.text_before_cursor.endswith("\\"))
        return (behind | Condition(lambda: self.typist.begins_line)) & ~is_searching


def bindings(
    typist: ChatKeys, shown: ChatLines, buffer: Buffer, refresh: Callable[[], None], suspend: Callable[[], None]
) -> KeyBindings:
    keys = KeyBindings()
    prompt = Prompt(typist, shown, buffer, Pastes(buffer, typist.tell), refresh, suspend)
    for add in (_editing_keys, _new_lines, _sending_keys, _stopping_keys, _leaving_keys, _keys_of_others):
        add(keys, prompt)

    def changed(_buffer: Buffer) -> None:
        typist.changed()
        if not buffer.text:
            typist.emptied()
        text, pasted = prompt.pastes.whole()
        before = shown.images
        shown.images, shown.labelled = typist.pictured(text, pasted), prompt.pastes.has_images
        if shown.images != before:
            refresh()

    buffer.on_text_changed += changed
    return keys


def _editing_keys(keys: KeyBindings, prompt: Prompt) -> None:
    buffer = prompt.buffer

    @keys.add("tab")
    def _(_event: KeyPressEvent) -> None:
        if buffer.complete_state and buffer.complete_state.completions:
            buffer.complete_next()
            return
        completions = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        if len(completions) == 1:
            buffer.apply_completion(completions[0])
        elif completions:
            buffer.complete_state = CompletionState(buffer.document, completions)
            buffer.complete_next()

    @keys.add("c-u", filter=has_selection)
    @keys.add("c-w", filter=has_selection)
    @keys.add("c-k", filter=has_selection)
    @keys.add("delete", filter=has_selection)
    def _(_event: KeyPressEvent) -> None:
        buffer.cut_selection()

    @keys.add("c-x", "c-e")
    @keys.add("c-g", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        event.app.create_background_task(_edit(prompt.pastes, prompt.shown))

    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        if buffer.selection_state:
            buffer.cut_selection()
        prompt.pastes.insert(event.data)


def _new_lines(keys: KeyBindings, prompt: Prompt) -> None:
    """Bind the keys that begin a new line in other programs, too."""
    buffer = prompt.buffer

    @keys.add("escape", "enter")
    @keys.add("c-j", filter=~is_searching)
    @keys.add("enter", filter=prompt.continued)
    def _(event: KeyPressEvent) -> None:
        if event.key_sequence[0].key == Keys.ControlM and buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
        buffer.newline(copy_margin=False)

    for modifier in MODIFIERS:

        @keys.add("escape", *f"[13;{modifier}u")
        def _(_event: KeyPressEvent) -> None:
            buffer.newline(copy_margin=False)


def _sending_keys(keys: KeyBindings, prompt: Prompt) -> None:
    typist, shown, pastes, buffer = prompt.typist, prompt.shown, prompt.pastes, prompt.buffer

    @keys.add("enter", filter=~is_searching & ~prompt.continued)
    def _(event: KeyPressEvent) -> None:
        if event.data in NEW_LINE:
            buffer.newline(copy_margin=False)
            return
        text, pasted = pastes.whole()
        if (readable := well_formed(text)) != text:  # it had bytes that are not UTF-8
            pastes.put(readable)
            text, pasted = readable, ((0, len(readable)),) if pasted else ()
        if typist.entered(text, pasted):
            if text.strip() and buffer.history.get_strings()[-1:] != [text]:
                buffer.history.append_string(text)
            prompt.clear()
        elif typist.asked is None:
            # Select the text: the next key replaces or removes it, and an arrow keeps it.
            buffer.cursor_position = len(buffer.text)
            buffer.selection_state = SelectionState(0, SelectionType.CHARACTERS)
            buffer.selection_state.enter_shift_mode()
        prompt.refresh()

    @keys.add("up", filter=prompt.empty & Condition(lambda: bool(shown.waiting)))
    def _(_event: KeyPressEvent) -> None:
        if queued := typist.unqueued():
            pastes.put(*queued)
        prompt.refresh()


def _stopping_keys(keys: KeyBindings, prompt: Prompt) -> None:
    typist, buffer = prompt.typist, prompt.buffer

    @keys.add(ALONE)
    def _(_event: KeyPressEvent) -> None:
        if is_searching():
            stop_search()
        elif buffer.complete_state:
            buffer.cancel_completion()
        elif buffer.selection_state:
            buffer.exit_selection()
        else:
            typist.escaped(empty=not buffer.text)
        prompt.refresh()

    @keys.add("c-c", filter=~is_searching)
    def _(_event: KeyPressEvent) -> None:
        if buffer.text:
            prompt.clear()
        elif not typist.interrupted():
            prompt.shown.notice = LEAVES
        prompt.refresh()

    @keys.add(Keys.SIGINT)
    def _(_event: KeyPressEvent) -> None:
        typist.interrupted()


def _leaving_keys(keys: KeyBindings, prompt: Prompt) -> None:
    typist, shown = prompt.typist, prompt.shown

    @keys.add("c-z")
    def _(event: KeyPressEvent) -> None:
        event.app.create_background_task(_suspended(prompt.suspend, shown))

    @keys.add("c-d", filter=prompt.empty)
    def _(_event: KeyPressEvent) -> None:
        typist.left(asks=True)
        prompt.refresh()

    @keys.add("c-@", filter=prompt.empty & Condition(lambda: time.monotonic() - shown.back_at < BACK_S))
    def _(_event: KeyPressEvent) -> None:
        """Leave at a Ctrl-D that was typed without the prompt: the terminal keeps it as a zero byte."""
        typist.left(asks=True)
        prompt.refresh()


def _keys_of_others(keys: KeyBindings, prompt: Prompt) -> None:
    for key, notice in OF_OTHERS.items():

        @keys.add(key, filter=prompt.empty)
        def _(_event: KeyPressEvent, notice: str = notice) -> None:
            prompt.shown.notice = notice
            prompt.refresh()

    for key, line in COMMANDS.items():

        @keys.add(key, filter=~is_searching)
        def _(_event: KeyPressEvent, line: str = line) -> None:
            prompt.typist.commanded(line)


async def _suspended(do: Callable[[], None], shown: ChatLines) -> None:
    async with without_prompt(shown):
        do()


async def _edit(pastes: Pastes, shown: ChatLines) -> None:
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
    """Return the text as the person left it in the editor; None if the editor failed."""
    editor = next(filter(None, map(os.environ.get, EDITORS)), "vi")
    with temporary_folder("message") as folder:
        file = folder / "message.md"
        file.write_text(text, "utf-8", "replace")
        code = subprocess.call([*shlex.split(editor), str(file)], env=for_child(os.environ))
        return None if code else file.read_text("utf-8", "replace").removesuffix("\n")


@asynccontextmanager
async def without_prompt(shown: ChatLines) -> AsyncIterator[None]:
    """Remove the prompt and show it again. The prompt gets keys that nobody read meanwhile."""
    try:
        async with in_terminal():
            yield
    finally:
        shown.back_at = time.monotonic()


class ChatKeys(Protocol):
    """The actions of the keys. Every method runs in the screen's thread.

    `asked` is the text that Enter sends once more. `tell` writes a line above the prompt.
    """

    asked: str | None
    tell: Callable[[str], None]

    def began(self) -> None: ...

    def entered(self, text: str, pasted: tuple[Span, ...]) -> bool:
        """Return whether the entered text, with its pasted parts, is taken."""
        ...

    def interrupted(self) -> bool:
        """Stop what runs. Returns whether something ran."""
        ...

    def escaped(self, *, empty: bool) -> None:
        """Stop the turn that runs, or, twice at an `empty` prompt where nothing runs, undo the last one."""
        ...

    @property
    def begins_line(self) -> bool:
        """Whether Enter follows an Esc in an unchanged text, as for Alt and Enter."""
        ...

    def changed(self) -> None:
        """Take note that the text in the prompt has changed."""
        ...

    def left(self, *, asks: bool = False) -> None:
        """Leave. Where that stops a turn, the first one only `asks`."""
        ...

    def commanded(self, line: str) -> None:
        """Run a command of chat."""
        ...

    def unqueued(self) -> tuple[str, tuple[Span, ...]] | None:
        """Edit the message that was typed last and is not sent yet. Returns its text and the pasted parts."""
        ...

    def pictured(self, text: str, pasted: tuple[Span, ...]) -> tuple[str, ...]:
        """Return the names of the images that go with the text."""
        ...

    def emptied(self) -> None:
        """Remove a message that was edited in the prompt, which is empty now."""
        ...

    def ended(self, error: BaseException | None) -> None: ...
