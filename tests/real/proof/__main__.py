"""`python -m tests.real.proof` proves the CLIs on PATH: one finding a line, as JSON."""

from __future__ import annotations

import asyncio
import os

import msgspec

from teamchat.core.doctor.checks import DoctorCheck
from teamchat.runners.child.command import capture
from tests.real.proof.prove import prove


def tell(check: DoctorCheck) -> None:
    print(msgspec.json.encode(check).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(prove(os.environ.get("PATH", os.defpath), capture, tell))
