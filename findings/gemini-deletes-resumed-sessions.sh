#!/usr/bin/env bash
# Gemini CLI 0.61.0, `--resume ID`: a session that is resumed in another minute than it began in is deleted, with all that was
# said in it, by the next start of Gemini in the same folder for another session. The resume leaves a second record beside the
# first, named by its own minute and without a message; the clean-up of old sessions, which every start runs, takes that one
# for an empty session and deletes all records of its short id. `--resume ID` then ends with 42.
#
# What to do: start it with `"general": {"sessionRetention": {"enabled": false}}` in its settings.
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
"""The Gemini API: says one word. Prints its port."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USAGE = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
CONTENT = {"role": "model", "parts": [{"text": "Done."}]}
ANSWER = {"candidates": [{"index": 0, "content": CONTENT, "finishReason": "STOP"}], "usageMetadata": USAGE}


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        streams = ":streamGenerateContent" in self.path
        self.send_response(200 if streams else 404)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if streams:
            self.wfile.write(f"data: {json.dumps(ANSWER)}\n\n".encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
PYTHON
python3 "$folder/model.py" > "$folder/port" &
server=$!
until [ -s "$folder/port" ]; do kill -0 "$server"; sleep 0.1; done

ask() {  # home, words, options: one run of Gemini
    local home=$1 words=$2
    shift 2
    (cd "$home/work" && env -i HOME="$home" PATH="$folder/npm/node_modules/.bin:$PATH" TMPDIR="$folder" GEMINI_API_KEY=fake-key \
        GOOGLE_GEMINI_BASE_URL="http://127.0.0.1:$(cat "$folder/port")" \
        gemini --skip-trust --output-format stream-json -m gemini-2.5-flash "$@" < <(echo "$words"))
}

prepare() {  # home, rest of its settings
    mkdir -p "$1/.gemini" "$1/work"
    echo '{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}'"$2}" \
        > "$1/.gemini/settings.json"
}
prepare "$folder/plain" ''
prepare "$folder/kept" ', "general": {"sessionRetention": {"enabled": false}}'

session() { sed -n 's/.*"session_id":"\([^"]*\)".*/\1/p' | head -n 1; }
plain=$(ask "$folder/plain" "One" | session)
kept=$(ask "$folder/kept" "One" | session)
began=$(date +%M)
while [ "$(date +%M)" = "$began" ]; do sleep 1; done

codes=
for home in plain kept; do
    ask "$folder/$home" "Two" --resume "${!home}" > /dev/null
    ask "$folder/$home" "Another session" > /dev/null
    code=0
    ask "$folder/$home" "Three" --resume "${!home}" > /dev/null 2> "$folder/$home/errors" || code=$?
    codes="$codes $home=$code"
done
echo "the third run of the session ended with:$codes"
grep -o "Invalid session identifier" "$folder/plain/errors" | head -n 1
[ "$codes" = " plain=42 kept=0" ] || { echo "not so any more"; exit 1; }
echo "still so: the session is deleted unless the clean-up is off"
