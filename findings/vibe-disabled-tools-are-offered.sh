#!/usr/bin/env bash
# Mistral Vibe 3.0.2, `vibe -p --disabled-tools NAME`: the tool is still offered to the model, with its whole schema, and a
# call of it is denied when it comes ("Tool execution denied by approval policy"). The help says "headless: disables all
# others" of `--enabled-tools`. So the option saves no tokens, the model plans with tools that it has not, and nothing on
# stdout or stderr tells that a call was denied.
#
# What to do: count on the bound, not on a shorter request; tell the model in its instructions what it may not do. In a
# harness, see what was denied in `--output streaming`, not in the text.
#
# It needs bash and a Python 3.12 or newer, as python3.12, python3.13 or PYTHON. The model is a script on loopback and the
# key is a fake. Exit code 0: it is still so.
set -euo pipefail

version=3.0.2
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
python=${PYTHON:-$(command -v python3.13 || command -v python3.12)}
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "mistral-vibe==$version"
mkdir -p "$folder/home/.vibe" "$folder/work"

cat > "$folder/model.py" <<'PYTHON'
"""OpenAI Chat Completions. The model calls `write_file`, and says "Done." to what comes back.

Prints its port, then for each request whether `write_file` was offered, and the last result of a tool.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TARGET = sys.argv[1]


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        offered = "write_file" in [tool["function"]["name"] for tool in body.get("tools", [])]
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        print(f"offered {offered}", *results[-1:], flush=True)
        delta = {"role": "assistant", "content": "Done."}
        if not results:
            arguments = json.dumps({"path": TARGET, "content": "x"})
            function = {"name": "write_file", "arguments": arguments}
            delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        about = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
        for choice in ({"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": "stop" if results else "tool_calls"}):
            self.wfile.write(f"data: {json.dumps({**about, 'choices': [{'index': 0, **choice}]})}\n\n".encode())
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        self.wfile.write(f"data: {json.dumps({**about, 'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_address[1], flush=True)
server.serve_forever()
PYTHON
"$python" "$folder/model.py" "$folder/work/made.txt" > "$folder/log" &
server=$!
until [ -s "$folder/log" ]; do sleep 0.1; done
port=$(head -n 1 "$folder/log")
cat > "$folder/home/.vibe/config.toml" <<TOML
active_model = "scripted"
enable_telemetry = false
enable_update_checks = false
[[providers]]
name = "scripted"
api_base = "http://127.0.0.1:$port"
api_key_env_var = "SCRIPTED_KEY"
backend = "generic"
[[models]]
name = "scripted"
provider = "scripted"
alias = "scripted"
TOML

cd "$folder/work"
printf 'Write made.txt.' | env -i HOME="$folder/home" PATH="$PATH" SCRIPTED_KEY=dummy \
  "$folder/venv/bin/vibe" -p --agent accept-edits --disabled-tools write_file > "$folder/out" 2> "$folder/err"

echo "requests:"
tail -n +2 "$folder/log" | cut -c1-160
echo "stdout: $(cat "$folder/out")"
grep -q "^offered True" "$folder/log"
grep -q "Tool execution denied by approval policy" "$folder/log"
[ ! -e "$folder/work/made.txt" ]
! grep -qi denied "$folder/out" "$folder/err"
echo "still so: a disabled tool is offered, denied when called, and no output tells so"
