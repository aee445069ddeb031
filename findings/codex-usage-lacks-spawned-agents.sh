#!/usr/bin/env bash
# Codex 0.169.0, `codex exec --json`: `usage` of `turn.completed` has the tokens of the agent's own requests alone.
# Those of the agents that it spawned (`spawn_agent`) are in no line of the output, so a budget on these figures does
# not hold.
#
# What to do: take the figures as a lower bound, and read those of the spawned agents from their session files
# (`token_count` in `$CODEX_HOME/sessions/**/*.jsonl`, a file for each agent), which a run with `--ephemeral` lacks.
#
# It needs bash, npm and python3. The model is a script on loopback and the key is a fake. Exit code 0: it is still so.
set -euo pipefail

version=0.169.0
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
mkdir -p "$folder/home/.codex" "$folder/work"
npm install --loglevel=error --no-audit --no-fund --prefix "$folder/npm" "@openai/codex@$version"

cat > "$folder/model.py" <<'PYTHON'
"""The OpenAI Responses API. The agent spawns another one, waits for it, and answers.

Prints its port, then for each request who asked and the tokens that it was told.
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

NUMBERS = count(1)
TASK = "SUBTASK: look at it."
TOKENS = {"agent": (11, 7), "spawned": (1000, 500)}


def call(name, **arguments):
    number = next(NUMBERS)
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "status": "completed"}
    return {**item, "namespace": "multi_agent_v1", "name": name, "arguments": json.dumps(arguments)}


def says(text):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    identity = {"type": "message", "id": f"msg_{next(NUMBERS)}", "role": "assistant"}
    return {**identity, "status": "completed", "content": content}


def answer(items):
    """Who asks, and the item that is the answer."""
    told = [part.get("text", "") for item in items if item.get("role") == "user" for part in item["content"]]
    if any(TASK in text for text in told):
        return "spawned", says("Seen.")
    outputs = [item["output"] for item in items if item.get("type") == "function_call_output"]
    if not outputs:
        return "agent", call("spawn_agent", message=TASK, agent_type="default")
    if len(outputs) == 1:
        return "agent", call("wait_agent", targets=[json.loads(outputs[0])["agent_id"]], timeout_ms=60_000)
    return "agent", says("Done.")


def events(body):
    who, item = answer(body["input"])
    given, made = TOKENS[who]
    print(f"{who} {given} {made}", flush=True)
    usage = {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + made,
    }
    begun = {"id": f"resp_{next(NUMBERS)}", "object": "response", "status": "in_progress", "output": [], "error": None}
    done = {**begun, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": done}


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        asked = self.path.split("?")[0] == "/v1/responses"
        self.send_response(200 if asked else 404)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events(json.loads(body)) if asked else ():
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
PYTHON
python3 "$folder/model.py" > "$folder/asked" &
server=$!
until [ -s "$folder/asked" ]; do kill -0 "$server"; sleep 0.1; done

cat > "$folder/home/.codex/config.toml" <<TOML
model = "gpt-5.5"
model_provider = "scripted"
analytics.enabled = false
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:$(head -n 1 "$folder/asked")/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
TOML
codex() {
    (cd "$folder/work" && env -i HOME="$folder/home" PATH="$folder/npm/node_modules/.bin:$PATH" TMPDIR="$folder" \
        FAKE_KEY=fake-key codex "$@")
}
codex --version
codex exec --json --skip-git-repo-check "Have an agent look at it." < /dev/null > "$folder/out"

python3 - "$folder/asked" "$folder/out" <<'PYTHON'
import json
import sys

asked = [line.split() for line in open(sys.argv[1], encoding="utf-8")][1:]
lines = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
sums = {}
for who, given, made in asked:
    before = sums.get(who, (0, 0))
    sums[who] = (before[0] + int(given), before[1] + int(made))
(usage,) = [line["usage"] for line in lines if line["type"] == "turn.completed"]
told = (usage["input_tokens"], usage["output_tokens"])
print("tokens that the model told of the agent's own requests:", sums["agent"])
print("tokens that the model told of the spawned agent's:", sums["spawned"])
print("types of the lines:", sorted({line["type"] for line in lines}))
print("`usage` of `turn.completed`:", told)
same = told == sums["agent"] and sum("usage" in json.dumps(line) for line in lines) == 1
print("still so: the spawned agent's tokens are missing" if same else "not so any more")
sys.exit(not same)
PYTHON
