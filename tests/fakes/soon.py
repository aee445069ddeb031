"""teamchat, but every run is long enough for a bell and a notification."""

from __future__ import annotations

from teamchat.cli.app import main
from teamchat.cli.running import notify

notify.AFTER_S = 0.0

if __name__ == "__main__":
    main()
