"""A CLI that stays, as Claude does with stream-json input: a line of input is a turn, an interrupt stops it.

It answers what it is asked in the last line of the prompt: `say TEXT`, `pid`, `hang` (until interrupted), `deaf` (it
hangs and ignores interrupts), `die`, `cost DOLLARS` (what it has cost in all),
`meet FOLDER` (its pid, once two processes have met there). Each result tells the
sum of all costs so far, as Claude does.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

FOREVER_S = 600


def write(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def result(turn: int, text: str, *, error: bool = False, cost: float | None = None) -> None:
    write(
        type="result",
        subtype="error_during_execution" if error else "success",
        is_error=error,
        result=text,
        usage={"input_tokens": 100, "output_tokens": 20},
        total_cost_usd=0.25 * turn if cost is None else cost,
        terminal_reason="aborted_streaming" if error else "completed",
    )


def main() -> None:
    words = sys.argv
    session = words[words.index("--resume") + 1] if "--resume" in words else f"session-{os.getpid()}"
    turn = 0
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["type"] == "control_request":
            continue  # nothing runs
        turn += 1
        write(type="system", subtype="init", model="scripted", session_id=session)
        order, _, text = asked["message"]["content"].rstrip().rpartition("\n")[2].partition(" ")
        match order:
            case "die":
                sys.exit(3)
            case "deaf":
                time.sleep(FOREVER_S)
            case "hang":
                write(type="stream_event", event=delta("half"), session_id=session)
                assert json.loads(sys.stdin.readline())["request"]["subtype"] == "interrupt"
                result(turn, "", error=True)
            case "meet":
                (Path(text) / str(os.getpid())).touch()
                until = time.monotonic() + FOREVER_S
                while len(os.listdir(text)) < 2 and time.monotonic() < until:  # noqa: PTH208
                    time.sleep(0.01)
                result(turn, str(os.getpid()))
            case "cost":
                result(turn, text, cost=float(text))
            case "pid":
                result(turn, str(os.getpid()))
            case _:
                result(turn, text or order)


def delta(text: str) -> dict[str, object]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


if __name__ == "__main__":
    main()
