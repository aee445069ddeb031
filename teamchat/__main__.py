"""`python -m teamchat`."""

from __future__ import annotations

from teamchat.cli.app import main

if __name__ == "__main__":
    main()
