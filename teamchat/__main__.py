"""`python -m teamchat` and the script `teamchat`."""

from __future__ import annotations

from teamchat.cli.shared.interrupts import end_at_once

end_at_once()


def main() -> None:
    from teamchat.cli.app import main as program

    program()


if __name__ == "__main__":
    main()
