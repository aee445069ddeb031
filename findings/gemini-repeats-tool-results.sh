#!/usr/bin/env bash
# Gemini CLI 0.61.0, `--resume ID`: a resumed session gives the model each tool result of an earlier run twice. If it is resumed
# in another minute than it began in, the second resume gives it three times, and four times where the model called two tools at
# once. Within that minute it stays at two. The record keeps a result beside the tool's call and as a message of its own.
#
# What to do: count on it where a session has read much. A fresh session that reads a file again may send less.
#
# It needs bash, npm and python3, and takes up to two minutes. The model is a script on loopback and the key is a fake. Exit
# code 0: it is still so.
set -euo pipefail

version=0.61.0
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
npm install --loglevel=error --no-audit --no-fund --prefix "$folder/npm" "@google/gemini-cli@$version"

cat > "$folder/model.py" <<'PYTHON'
"""The Gemini API: has the file read once, then says one word. Prints its port, then how often it was sent the file."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USAGE = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        streams = ":streamGenerateContent" in self.path
        self.send_response(200 if streams else 404)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if streams:
            sent = body.count(b"purple elephants")
            part = {"text": "Done."} if sent else {"functionCall": {"name": "read_file", "args": {"file_path": "note.txt"}}}
            if sent:
                print(sent, flush=True)
            content = {"role": "model", "parts": [part]}
            answer = {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}], "usageMetadata": USAGE}
            self.wfile.write(f"data: {json.dumps(answer)}\n\n".encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
PYTHON
python3 "$folder/model.py" > "$folder/printed" &
server=$!
until [ -s "$folder/printed" ]; do kill -0 "$server"; sleep 0.1; done

mkdir -p "$folder/home/.gemini" "$folder/work"
echo "purple elephants" > "$folder/work/note.txt"
echo '{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}}' \
    > "$folder/home/.gemini/settings.json"

ask() {  # words, options: one run of Gemini
    local words=$1
    shift
    (cd "$folder/work" && env -i HOME="$folder/home" PATH="$folder/npm/node_modules/.bin:$PATH" TMPDIR="$folder" \
        GEMINI_API_KEY=fake-key GOOGLE_GEMINI_BASE_URL="http://127.0.0.1:$(head -n 1 "$folder/printed")" \
        gemini --skip-trust --output-format stream-json -m gemini-2.5-flash "$@" < <(echo "$words"))
}

session=$(ask "Read note.txt." | sed -n 's/.*"session_id":"\([^"]*\)".*/\1/p' | head -n 1)
began=$(date +%M)
while [ "$(date +%M)" = "$began" ]; do sleep 1; done
for number in 2 3 4; do
    ask "Question $number." --resume "$session" > /dev/null
done

sent=$(tail -n +2 "$folder/printed" | xargs)
echo "the text of the file, read once, in the last request of each run: $sent times"
[ "$sent" = "1 2 3 3" ] || { echo "not so any more"; exit 1; }
echo "still so: a resumed session repeats tool results"
