#!/usr/bin/env bash
# Claude Code 2.1.330, `claude -p --resume`: `total_cost_usd` of the `result` line is that of the whole session, with
# all runs before this one, while `usage` of the same line is that of this run alone. Who adds up `total_cost_usd` over
# the runs of a session counts too much: 1 + 2 + 3 instead of 3 for three equal runs. 2.1.260 told the cost of the run.
#
# What to do: add up `costUSD` over the models in `model_usage_since_last_result`, over all `result` lines of the run.
#
# It needs bash, npm and python3. The model is a script on loopback and the key is a fake. Exit code 0: it is still so.
set -euo pipefail

version=2.1.330
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
mkdir "$folder/home" "$folder/work"
npm install --loglevel=error --no-audit --no-fund --prefix "$folder/npm" "@anthropic-ai/claude-code@$version"

cat > "$folder/model.py" <<'PYTHON'
"""The Anthropic Messages API with one answer, 11 tokens in and 7 out. Prints its port."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

NUMBERS = count(1)


def events():
    usage = {"input_tokens": 11, "output_tokens": 7}
    identity = {"id": f"msg_{next(NUMBERS)}", "type": "message", "role": "assistant", "model": "scripted"}
    message = {**identity, "usage": usage}
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        asked = self.path.split("?")[0] == "/v1/messages"
        self.send_response(200 if asked else 404)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events() if asked else ():
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
PYTHON
python3 "$folder/model.py" > "$folder/port" &
server=$!
until [ -s "$folder/port" ]; do kill -0 "$server"; sleep 0.1; done

claude() {
    (cd "$folder/work" && env -i HOME="$folder/home" PATH="$folder/npm/node_modules/.bin:$PATH" TMPDIR="$folder" \
        ANTHROPIC_BASE_URL="http://127.0.0.1:$(cat "$folder/port")" ANTHROPIC_API_KEY=fake-key \
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 claude "$@")
}
claude --version
ask() {
    claude -p --output-format stream-json --verbose --model claude-opus-4-8 "$@" Hi < /dev/null | grep '"type":"result"'
}
ask > "$folder/1"
session=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["session_id"])' < "$folder/1")
ask --resume "$session" > "$folder/2"
ask --resume "$session" > "$folder/3"

python3 - "$folder/1" "$folder/2" "$folder/3" <<'PYTHON'
import json
import sys

results = [json.load(open(name, encoding="utf-8")) for name in sys.argv[1:]]
for number, result in enumerate(results, 1):
    usage = result["usage"]
    own = sum(model["costUSD"] for model in result.get("model_usage_since_last_result", {}).values())
    tokens = f"{usage['input_tokens']} + {usage['output_tokens']} tokens"
    print(f"run {number}: usage {tokens}, total_cost_usd {result['total_cost_usd']:.5f}, costUSD of the run {own:.5f}")
costs = [result["total_cost_usd"] / results[0]["total_cost_usd"] for result in results]
tokens = {(result["usage"]["input_tokens"], result["usage"]["output_tokens"]) for result in results}
same = [round(cost, 6) for cost in costs] == [1, 2, 3] and tokens == {(11, 7)}
print("still so: the cost adds up, the tokens do not" if same else "not so any more")
sys.exit(not same)
PYTHON
