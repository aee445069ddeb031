"""A CLI that stays, as Claude does with stream-json input: a line of input is a turn, an interrupt stops it.

It answers what it is asked in the last line of the prompt: `say TEXT`, `pid`, `hang` (until interrupted), `deaf` (it
hangs and ignores interrupts), `die`, `cost DOLLARS` (what it has cost in all), `cost DOLLARS OWN` (and the turn alone,
as 2.1.330 tells), `meet FOLDER` (its pid, once two processes have met there), `run COMMAND` (what that prints). With
`unsaid TEXT` it answers, but tells no end of the
turn while it is kept running: `unsaid-late SECONDS` tells it late, `unsaid-deaf` neither tells it nor ends with its
input. Each result tells the sum of all costs so far, as Claude does. Without `--input-format` it takes one prompt, and
exits.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

FOREVER_S = 600
TOKENS = {"inputTokens": 100, "outputTokens": 20}


def write(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def result(turn: int, text: str, *, error: bool = False, cost: float | None = None, own: float | None = None) -> None:
    write(
        type="result",
        subtype="error_during_execution" if error else "success",
        is_error=error,
        result=text,
        usage={"input_tokens": 100, "output_tokens": 20},
        total_cost_usd=0.25 * turn if cost is None else cost,
        terminal_reason="aborted_streaming" if error else "completed",
        **({} if own is None else {"model_usage_since_last_result": {"m": {**TOKENS, "costUSD": own}}}),
    )


def main() -> None:
    words = sys.argv
    session = words[words.index("--resume") + 1] if "--resume" in words else f"session-{os.getpid()}"
    turn, stays = 0, "--input-format" in words
    for line in sys.stdin if stays else [json.dumps({"type": "user", "message": {"content": sys.stdin.read()}})]:
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
                while len(os.listdir(text)) < 2 and time.monotonic() < until:
                    time.sleep(0.01)
                result(turn, str(os.getpid()))
            case "unsaid" | "unsaid-late" | "unsaid-deaf":
                answer(text or order)
                if stays and order != "unsaid":
                    time.sleep(float(text) if text else FOREVER_S)
                if not stays or order == "unsaid-late":
                    result(turn, text or order)
            case "run":
                result(turn, os.popen(text).read())  # noqa: S605 (the test's own words)
            case "cost":
                in_all, *own = map(float, text.split())
                result(turn, text, cost=in_all, own=own[0] if own else None)
            case "pid":
                result(turn, str(os.getpid()))
            case _:
                result(turn, text or order)


def answer(text: str) -> None:
    """A streamed message, up to its end."""
    write(type="stream_event", event={"type": "message_start", "message": {"id": "m"}})
    write(type="stream_event", event=delta(text))
    write(type="assistant", message={"content": [{"type": "text", "text": text}]})
    write(type="stream_event", event={"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    write(type="stream_event", event={"type": "message_stop"})


def delta(text: str) -> dict[str, object]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


if __name__ == "__main__":
    main()
