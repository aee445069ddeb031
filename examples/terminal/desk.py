"""A program that has only a terminal: it prompts, reads a line and answers, and knows no other way. Yours goes here.

It stands for any chat program or REPL without a headless mode, and refuses a pipe as such programs do.
"""

from __future__ import annotations

import cmd
import sys


class Desk(cmd.Cmd):
    intro = "Desk, ready."
    prompt = "desk> "

    def default(self, line: str) -> bool:
        if line == "EOF":
            return True
        print(f"You sent {len(line.split())} words. The last ones were:")
        print(" ".join(line.split()[-6:]))
        return False


if __name__ == "__main__":
    if not sys.stdin.isatty():
        sys.exit("desk needs a terminal")
    Desk().cmdloop()
