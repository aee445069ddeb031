"""A stdio MCP server that makes the file STARTED when it starts; its one tool, `write_it`, makes the file WRITTEN."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(started: str, written: str) -> None:
    Path(started).touch()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message, Path(written))
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


def answer(message: dict[str, Any], written: Path) -> dict[str, Any]:
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            name = {"name": "writer", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": name}
        case "tools/list":
            schema = {"type": "object", "properties": {}}
            return {"tools": [{"name": "write_it", "description": "Writes a file.", "inputSchema": schema}]}
        case "tools/call":
            written.touch()
            return {"content": [{"type": "text", "text": "written"}]}
    return {}


if __name__ == "__main__":
    main(*sys.argv[1:])
