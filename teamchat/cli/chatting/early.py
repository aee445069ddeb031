"""What a person typed or pasted before the prompt was there."""

from __future__ import annotations

import os
import select
import termios

from teamchat.core.text.clean import clean

QUIET_S = 0.05  # without a further byte the text is over
CHUNK = 65536


def typed_early() -> str:
    """The text that waits at the terminal, without keys such as arrows; empty if there is none.

    Nobody saw a prompt then, so its lines are no messages to send one by one.
    """
    modes = termios.tcgetattr(0)
    by_key = [*modes[:3], modes[3] & ~(termios.ICANON | termios.ECHO), *modes[4:]]
    termios.tcsetattr(0, termios.TCSANOW, by_key)  # or a line without its end would wait
    typed = bytearray()
    try:
        while select.select((0,), (), (), QUIET_S if typed else 0)[0] and (piece := os.read(0, CHUNK)):
            typed += piece
    finally:
        termios.tcsetattr(0, termios.TCSANOW, modes)
    return clean(typed.decode(errors="replace")).rstrip("\n")
