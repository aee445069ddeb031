"""teamchat, but agents may take ten minutes to end after a soft signal: only a hard stop ends a deaf one."""

from __future__ import annotations

from teamchat.runners.base import StopRule

GRACE_S = 600.0
signal, group, _ = StopRule.__init__.__defaults__ or ()
StopRule.__init__.__defaults__ = (signal, group, GRACE_S)  # before the runners have theirs

from teamchat.cli.app import main  # noqa: E402

if __name__ == "__main__":
    main()
