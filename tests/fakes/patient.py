"""teamchat, but agents may take ten minutes to end after a soft signal: only a hard stop ends a deaf one.

The event loop may take as long to answer: the turn is stored, however busy the machine is.
"""

from __future__ import annotations

from functools import partial

from teamchat.runners import base

GRACE_S = 600.0
base.StopRule = partial(base.StopRule, grace_s=GRACE_S)  # type: ignore[assignment,misc] # before the runners have it

from teamchat.cli.app import main  # noqa: E402
from teamchat.cli.running import second_signal  # noqa: E402

second_signal.ANSWER_S = GRACE_S

if __name__ == "__main__":
    main()
