#!/usr/bin/env bash
# Gemini CLI 0.61.0, `--output-format stream-json`: a shell command with an expansion (`$((1+1))` is one) does not run, also
# with `--approval-mode yolo`. Its `tool_result` has the status "success", and only the text of its output says "Blocked: ...".
# The `result` line counts it as a success, too.
#
# What to do: take that output for a refusal where the command that was asked for has an expansion outside of single quotes.
#
# It needs bash, npm and python3. The model is a script on loopback and the key is a fake. Exit code 0: it is still so.
set -euo pipefail

version=0.61.0
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
mkdir -p "$folder/home/.gemini" "$folder/work"
npm install --loglevel=error --no-audit --no-fund --prefix "$folder/npm" "@google/gemini-cli@$version"
echo '{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}}' \
    > "$folder/home/.gemini/settings.json"

cat > "$folder/model.py" <<'PYTHON'
"""The Gemini API: asks for one command, and is done once it has the result. Prints its port."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CALL = {"functionCall": {"name": "run_shell_command", "args": {"command": "echo $((1+1)) > made.txt"}}}
USAGE = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        part = {"text": "Done."} if b"functionResponse" in body else CALL
        content = {"role": "model", "parts": [part]}
        answer = {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}], "usageMetadata": USAGE}
        streams = ":streamGenerateContent" in self.path
        self.send_response(200 if streams else 404)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if streams:
            self.wfile.write(f"data: {json.dumps(answer)}\n\n".encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
PYTHON
python3 "$folder/model.py" > "$folder/port" &
server=$!
until [ -s "$folder/port" ]; do kill -0 "$server"; sleep 0.1; done

cd "$folder/work"
env -i HOME="$folder/home" PATH="$folder/npm/node_modules/.bin:$PATH" TMPDIR="$folder" GEMINI_API_KEY=fake-key \
    GOOGLE_GEMINI_BASE_URL="http://127.0.0.1:$(cat "$folder/port")" \
    gemini --skip-trust --approval-mode yolo --output-format stream-json -m gemini-2.5-flash < <(echo Go) > "$folder/out"

python3 - "$folder/out" <<'PYTHON'
import json
import sys
from pathlib import Path

events = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
(told,) = (event for event in events if event["type"] == "tool_result")
made = Path("made.txt").exists()
print(f"status {told['status']}, output {told['output']!r}, the file was made: {made}")
same = told["status"] == "success" and told["output"].startswith("Blocked: ") and not made
print("still so: a refusal is told as a success" if same else "not so any more")
sys.exit(not same)
PYTHON
