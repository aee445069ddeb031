#!/usr/bin/env bash
# Claude Code 2.1.330, `claude -p --output-format stream-json`: the `result` line has only the last block of text of an
# answer that came in several blocks, such as text, thinking, text. Nothing says that the beginning is missing.
#
# What to do: join the `text` blocks of the `assistant` lines that have the `message.id` of the last one, instead of
# reading `result`.
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
"""The Anthropic Messages API with one answer: text, thinking, text. Prints its port."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BLOCKS = [
    ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "First: make a backup."}]),
    (
        {"type": "thinking", "thinking": "", "signature": ""},
        [{"type": "thinking_delta", "thinking": "What is next?"}, {"type": "signature_delta", "signature": "c2ln"}],
    ),
    ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Second: delete the folder."}]),
]


def events():
    usage = {"input_tokens": 11, "output_tokens": 7}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "usage": usage}
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None}}
    for index, (block, deltas) in enumerate(BLOCKS):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
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
claude -p --output-format stream-json --verbose --model claude-opus-4-8 "How?" < /dev/null > "$folder/out"

python3 - "$folder/out" <<'PYTHON'
import json
import sys

lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
said = [block["text"] for line in lines if line["type"] == "assistant"
        for block in line["message"]["content"] if block["type"] == "text"]
(result,) = [line for line in lines if line["type"] == "result"]
print("text of the `assistant` lines:", said)
print("`result` of the `result` line:", [result["result"]], "with subtype", result["subtype"])
same = len(said) == 2 and result["result"] == said[-1]
print("still so: `result` is the last block" if same else "not so any more")
sys.exit(not same)
PYTHON
