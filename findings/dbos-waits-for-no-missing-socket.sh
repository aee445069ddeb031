#!/usr/bin/env bash
# DBOS 3.4.0 with psycopg 3.3.9: "everything pauses until the connection is recovered" holds where PostgreSQL is reached
# over TCP, and not where it is reached over a Unix socket. While the server is down its socket is gone; psycopg then says
# "connection is bad" in place of "connection failed", and DBOS looks for the latter. So an operation raises at once, and
# a step that writes to a stream while the server starts anew fails for good: its workflow stays PENDING, and its process,
# which lives on, never runs it again.
#
# What to do: catch OperationalError around what a step writes, and try again. Do not count on an end being stored.
#
# It needs bash and python3 (3.11 or later), and no PostgreSQL. Exit code 0: it is still so.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check dbos==3.4.0 'psycopg[binary]==3.3.9'

cat > "$folder/ask.py" <<'PYTHON'
"""Asks a server that is down by TCP and by a socket. Prints what a call does within three seconds."""

import logging
import os
import socket
import sys
import threading

from dbos import DBOSClient

logging.disable(logging.CRITICAL)


def asked(url):
    client, said = DBOSClient(system_database_url=url, lazy=True), []

    def ask():
        try:
            client.list_workflows()
        except Exception as error:
            said.append(type(error).__name__)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(3)
    return f"raises {said[0]}" if said else "waits"


with socket.socket() as free:  # a port on which nobody listens, as nobody can while it is bound here
    free.bind(("127.0.0.1", 0))
    tcp = asked(f"postgresql://u:p@127.0.0.1:{free.getsockname()[1]}/d?connect_timeout=2")
unix = asked(f"postgresql://u@/d?host={sys.argv[1]}")
print(f"TCP: {tcp}; socket: {unix}", flush=True)
os._exit(0)  # a call still waits
PYTHON

seen=$("$folder/venv/bin/python" "$folder/ask.py" "$folder")
echo "$seen"
[ "$seen" = "TCP: waits; socket: raises OperationalError" ]
