#!/usr/bin/env bash
# GitHub Copilot CLI 1.0.102, `copilot -s --allow-all-tools`: a file inside of the working folder is written and a shell
# command runs, but its own tool for files is denied outside of the folder: "Permission denied because no interactive user
# response was available". The option allows tools; paths are a permission of their own (`--allow-all-paths`), and only
# the folder of TMPDIR is always allowed. The exit code is 0, and nothing on stdout or stderr tells that a call was denied.
#
# What to do: whoever gives "everything" to a headless Copilot gives `--allow-all-paths` too, or names the folders with
# `--add-dir`, and looks for denials in `--output-format json`, not in the text.
#
# It needs bash, npm, python3 and a Node that Copilot accepts (22). The model is a script on loopback, no account is used,
# and the key is a fake. Exit code 0: it is still so.
set -euo pipefail

version=1.0.102
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
mkdir -p "$folder/home" "$folder/work" "$folder/beside"
npm install --loglevel=error --no-audit --no-fund --prefix "$folder/npm" "@github/copilot@$version"

cat > "$folder/model.py" <<'PYTHON'
"""OpenAI Chat Completions. The model writes a file in the folder, one beside it, runs a command, and says "Done."

Prints its port, then the last result of a tool in each request.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORK, BESIDE = sys.argv[1:]
CALLS = [
    ("create", {"path": f"{WORK}/made.txt", "file_text": "x"}),
    ("create", {"path": f"{BESIDE}/made.txt", "file_text": "x"}),
    ("bash", {"command": f"touch {WORK}/ran.txt", "description": "Run it", "mode": "sync"}),
]


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        if results:
            print(json.dumps(results[-1]), flush=True)
        message = {"role": "assistant", "content": "Done."}
        if len(results) < len(CALLS):
            name, arguments = CALLS[len(results)]
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"index": 0, "id": f"call_{len(results)}", "type": "function", "function": function}
            message = {"role": "assistant", "content": "", "tool_calls": [call]}
        reason = "tool_calls" if "tool_calls" in message else "stop"
        about = {"id": "chat-1", "created": 1, "model": "scripted"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        self.send_response(200)
        if not body.get("stream"):
            self.send_header("content-type", "application/json")
            self.end_headers()
            choice = {"index": 0, "message": message, "finish_reason": reason}
            self.wfile.write(json.dumps({**about, "object": "chat.completion", "choices": [choice], "usage": usage}).encode())
            return
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        about["object"] = "chat.completion.chunk"
        for choice in ({"delta": message, "finish_reason": None}, {"delta": {}, "finish_reason": reason}):
            self.wfile.write(f"data: {json.dumps({**about, 'choices': [{'index': 0, **choice}]})}\n\n".encode())
        self.wfile.write(f"data: {json.dumps({**about, 'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_address[1], flush=True)
server.serve_forever()
PYTHON
python3 "$folder/model.py" "$folder/work" "$folder/beside" > "$folder/log" &
server=$!
until [ -s "$folder/log" ]; do sleep 0.1; done
port=$(head -n 1 "$folder/log")

cd "$folder/work"
printf 'Write the files.' | env -i HOME="$folder/home" TMPDIR="$folder/home" PATH="$PATH" COPILOT_OFFLINE=true COPILOT_MODEL=scripted \
  COPILOT_PROVIDER_BASE_URL="http://127.0.0.1:$port" COPILOT_PROVIDER_API_KEY=dummy \
  "$folder/npm/node_modules/.bin/copilot" -s --no-auto-update --allow-all-tools > "$folder/out" 2> "$folder/err"

echo "results of the tools:"
tail -n +2 "$folder/log" | cut -c1-200
echo "stdout: $(tr -d '\n' < "$folder/out")"
[ -e "$folder/work/made.txt" ] && [ -e "$folder/work/ran.txt" ]
[ ! -e "$folder/beside/made.txt" ]
grep -q "no interactive user response was available" "$folder/log"
! grep -qi denied "$folder/out" "$folder/err"
echo "still so: --allow-all-tools runs commands, and a file outside of the folder is denied in silence"
