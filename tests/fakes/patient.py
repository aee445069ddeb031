"""teamchat, but agents may take ten minutes to end after a soft signal: only a hard stop ends a deaf one.

The event loop may take as long to answer: the turn is stored, however busy the machine is.
"""

from __future__ import annotations

from teamchat.runners.base import StopRule

GRACE_S = 600.0
signal, group, _ = StopRule.__init__.__defaults__ or ()
StopRule.__init__.__defaults__ = (signal, group, GRACE_S)  # before the runners have theirs

from teamchat.cli.app import main  # noqa: E402
from teamchat.cli.shared import second_signal  # noqa: E402

second_signal.PATIENCE_S = GRACE_S

if __name__ == "__main__":
    main()
