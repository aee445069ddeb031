#!/usr/bin/env bash
# Claude Code 2.1.332: two `claude -p --resume ID` of one session at the same time both answer and end with 0. The next one
# continues the run that ended last alone: question and answer of the other one stay in the record of the session, and
# are in no later request. Codex 0.171.0 refuses the second one ("already has an active writer").
#
# What to do: hold a lock for a session, or compare the ids of the last `assistant` event with the record before going on
# (`parentUuid` of its last row, and of those above it).
#
# It needs bash, npm and python3. The model is a script on loopback and the key is a fake. Exit code 0: it is still so.
set -euo pipefail

version=2.1.332
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
mkdir "$folder/home" "$folder/work"
npm install --loglevel=error --no-audit --no-fund --prefix "$folder/npm" "@anthropic-ai/claude-code@$version"

cat > "$folder/model.py" <<'PYTHON'
"""The Anthropic Messages API: answers one that says SLOW once there is a file `quick`. Keeps the last request, prints its port."""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

NUMBERS, FOLDER = count(1), Path(sys.argv[1])


def events(asked):
    usage = {"input_tokens": 11, "output_tokens": 7}
    identity = {"id": f"msg_{next(NUMBERS)}", "type": "message", "role": "assistant", "model": "scripted"}
    message = {**identity, "usage": usage}
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None}}
    if "SLOW" in asked and "QUICK" not in asked and "LAST" not in asked:
        (FOLDER / "slow").touch()
        while not (FOLDER / "quick").exists():
            time.sleep(0.1)
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        asked = self.path.split("?")[0] == "/v1/messages"
        if asked:
            (FOLDER / "last").write_text(body)
        self.send_response(200 if asked else 404)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events(body) if asked else ():
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
PYTHON
python3 "$folder/model.py" "$folder" > "$folder/port" &
server=$!
until [ -s "$folder/port" ]; do kill -0 "$server"; sleep 0.1; done

claude() {
    (cd "$folder/work" && env -i HOME="$folder/home" PATH="$folder/npm/node_modules/.bin:$PATH" TMPDIR="$folder" \
        ANTHROPIC_BASE_URL="http://127.0.0.1:$(cat "$folder/port")" ANTHROPIC_API_KEY=fake-key \
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 claude "$@")
}
claude --version
ask() {
    claude -p --output-format json --model claude-opus-4-8 "$@" < /dev/null
}
session=$(ask FIRST | python3 -c 'import json, sys; print(json.load(sys.stdin)["session_id"])')
ask --resume "$session" SLOW > "$folder/slow.json" &
slow=$!
until [ -e "$folder/slow" ]; do kill -0 "$slow"; sleep 0.1; done
ask --resume "$session" QUICK > "$folder/quick.json"
touch "$folder/quick"
wait "$slow"
ask --resume "$session" LAST > /dev/null

record=$(echo "$folder"/home/.claude/projects/*/"$session.jsonl")
python3 - "$folder/last" "$record" "$folder/slow.json" "$folder/quick.json" <<'PYTHON'
import json
import sys

last, record, *results = (open(name, encoding="utf-8").read() for name in sys.argv[1:])
ended = [json.loads(result)["is_error"] for result in results]
had = {word: word in last for word in ("FIRST", "SLOW", "QUICK", "LAST")}
print(f"errors of the two: {ended}; the next request has: {had}; the record has QUICK: {'QUICK' in record}")
same = not any(ended) and had == {"FIRST": True, "SLOW": True, "QUICK": False, "LAST": True} and "QUICK" in record
print("still so: the one that ended first is forgotten" if same else "not so any more")
sys.exit(not same)
PYTHON
