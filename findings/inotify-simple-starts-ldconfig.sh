#!/usr/bin/env bash
# inotify_simple 2.0.1, asyncinotify 4.4.4, on Linux: to be told of changes of files starts another program. They look for
# libc by `ctypes.util.find_library`, which runs `/sbin/ldconfig -p` (where that names none, the gcc or ld of PATH):
# inotify_simple at the first `INotify()` of a process, asyncinotify when it is imported. inotify itself needs no process.
#
# What to do: make the `INotify()` early, where a child process may still be started (before a sandbox that forbids it, not
# in a signal handler), and once for each process: later ones start nothing.
#
# It needs bash, python3 with venv, and ldconfig. Exit code 0: it is still so.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check inotify_simple==2.0.1 asyncinotify==4.4.4

cat > "$folder/starts.py" <<'PY'
import sys

when = ""
started = []


def hear(event, args):
    if event == "subprocess.Popen":
        started.append((when, [str(word) for word in args[1]]))


sys.addaudithook(hear)
when = "import inotify_simple"
import inotify_simple
when = "the first INotify()"
inotify_simple.INotify().close()
when = "the second INotify()"
inotify_simple.INotify().close()
when = "import asyncinotify"
import asyncinotify
for moment, command in started:
    print(f"{moment}: {' '.join(command)}")
PY

"$folder/venv/bin/python" "$folder/starts.py" | tee "$folder/out"
grep -q '^the first INotify(): .*ldconfig -p$' "$folder/out"
grep -q '^import asyncinotify: .*ldconfig -p$' "$folder/out"
[ "$(wc -l < "$folder/out")" = 2 ]
