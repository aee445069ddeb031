"""An agent that says what its script holds: `scripted.py FOLDER MEMBER`.

`FOLDER/MEMBER.replies` has its replies in `marshal`'s format, one a turn. A reply is an object of `say` (its whole
output, which `spoken` makes of a text), `err` (for stderr), `exit`, `hang` (seconds, after speaking), and before
speaking `touch` (a file) and `wait` (until that file is there). The nth prompt that it got is `FOLDER/MEMBER.n`;
`FOLDER/MEMBER.hangs` is there once it hangs.

The tests start it thousands of times: `json` and `pathlib` would take half of its time.
"""

from __future__ import annotations

import marshal
import os
import sys
import time


def spoken(
    like: str, text: str, session: str = "v-1", usage: dict[str, int] | None = None, version: object = "2.1.197"
) -> str:
    """`text` as the whole output of a successful turn of an agent of this kind, in that session of its own.

    `like` is plain, claude, codex, gemini or opencode.
    `version` is what a Claude says it is.
    """
    if like == "plain":
        return text
    import json

    usage = usage or {"input_tokens": 100, "output_tokens": 20}
    events: dict[str, list[dict[str, object]]] = {
        "claude": [
            {
                "type": "system",
                "subtype": "init",
                "model": "scripted",
                "session_id": session,
                "claude_code_version": version,
            },
            {"type": "assistant", "uuid": f"row {text}", "message": {"content": [{"type": "text", "text": text}]}},
            {
                "type": "result",
                "subtype": "success",
                "is_error": False,
                "result": text,
                "usage": usage,
                "total_cost_usd": 0.25,
            },
        ],
        "codex": [
            {"type": "thread.started", "thread_id": session},
            {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": text}},
            {"type": "turn.completed", "usage": usage},
        ],
        "gemini": [
            {"type": "init", "session_id": session, "model": "scripted"},
            {"type": "message", "role": "assistant", "content": text, "delta": True},
            {"type": "result", "status": "success", "stats": {"total_tokens": 120, **usage}},
        ],
        "opencode": [
            {"type": "step_start", "sessionID": session, "part": {"messageID": "m1"}},
            {"type": "text", "sessionID": session, "part": {"messageID": "m1", "text": text}},
            {
                "type": "step_finish",
                "sessionID": session,
                "part": {
                    "messageID": "m1",
                    "reason": "stop",
                    "tokens": {"input": usage["input_tokens"], "output": usage["output_tokens"], "cache": {}},
                    "cost": 0.25,
                },
            },
        ],
    }
    return "".join(json.dumps(event) + "\n" for event in events[like])


def begun_request() -> str:
    """What a Claude prints at the beginning of a model's answer."""
    import json

    usage = {"input_tokens": 6, "cache_read_input_tokens": 5, "output_tokens": 1}
    event = {"type": "message_start", "message": {"id": "m1", "usage": usage}}
    return json.dumps({"type": "stream_event", "event": event}) + "\n"


def main(folder: str, member: str) -> int:
    prompt = sys.stdin.buffer.read()
    names = (name.rpartition(".") for name in os.listdir(folder))
    turn = 1 + sum(name == member and number.isdigit() for name, _, number in names)
    with open(f"{folder}/{member}.{turn}", "wb") as file:
        file.write(prompt)
    with open(f"{folder}/{member}.replies", "rb") as file:
        replies = marshal.load(file)
    if turn > len(replies):
        write(2, f"no reply in the script for turn {turn}\n".encode())
        return 98
    step = replies[turn - 1]
    if "touch" in step:
        touch(step["touch"])
    while "wait" in step and not os.path.exists(step["wait"]):
        time.sleep(0.02)
    for stream, text in ((1, step.get("say", "")), (2, step.get("err", ""))):
        write(stream, text.encode())
    if "hang" in step:
        touch(f"{folder}/{member}.hangs")
        time.sleep(float(step["hang"]))
    return int(step.get("exit", 0))


def write(stream: int, data: bytes) -> None:
    while data:
        data = data[os.write(stream, data) :]


def touch(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o666))


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:3]))  # an interpreter takes milliseconds to take itself apart
