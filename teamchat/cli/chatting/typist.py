"""What the keys of the prompt do, as the screen calls it."""

from __future__ import annotations

from typing import Protocol


class Typist(Protocol):
    """What the keys do. Every method runs in the screen's thread."""

    def began(self) -> None: ...

    def entered(self, text: str) -> str | None:
        """Take the text that was entered, or return it to the prompt."""
        ...

    def interrupted(self) -> bool:
        """Stop what runs. False if nothing runs."""
        ...

    def left(self) -> None: ...

    def unqueued(self) -> str | None:
        """Remove the message that was typed last and is not sent yet. Returns its text."""
        ...

    def ended(self, error: BaseException | None) -> None: ...
