"""Keeps Gemini from the project's `.env` and `.gemini/settings.json` (observed at 0.55.1, 0.58.0 and 0.61.0).

Gemini loads the nearest `.gemini/.env` or `.env` upwards of its folder, also with `--skip-trust`. A variable in it can
take the user's key elsewhere, replace the system prompt or, by BASH_ENV, run the project's commands. No flag switches
that off, and what a file would set cannot be listed beforehand. So Node loads a module before Gemini. In that process
the files do not exist, whenever they are written and whatever is in them, and a broken settings file stops no turn. The
user's own files, in the home folder, are read as in the plain CLI.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

_MODULE = """\
"use strict";
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const before = %s;  // NODE_OPTIONS as it was: programs that Gemini starts are not concerned
if (before === null) delete process.env.NODE_OPTIONS;
else process.env.NODE_OPTIONS = before;

const { existsSync, readFileSync, realpathSync } = fs;
const home = path.resolve(process.env.GEMINI_CLI_HOME || os.homedir());
const homes = existsSync(home) ? [home, realpathSync(home)] : [home];

function isTheUsers(file) {
  const folder = path.dirname(file);
  return homes.some((one) => {
    const own = path.join(one, ".gemini");
    return folder === one || folder === own || folder.startsWith(path.join(own, "extensions") + path.sep);
  });
}

function isHidden(name) {
  if (typeof name !== "string") return false;
  const file = path.resolve(name);
  return (path.basename(file) === ".env" || file.endsWith(path.join("/.gemini", "settings.json"))) && !isTheUsers(file);
}

fs.existsSync = (name) => !isHidden(name) && existsSync(name);
fs.readFileSync = (name, ...options) => {
  if (!isHidden(name)) return readFileSync(name, ...options);
  throw Object.assign(new Error(`ENOENT: no such file or directory, open '${name}'`), { code: "ENOENT" });
};
require("node:module").syncBuiltinESMExports();
"""


def without_project_files(scratch: Path, env: Mapping[str, str]) -> tuple[dict[str, str], dict[Path, bytes]]:
    """The variable that makes Node load the module first, and the module's file; `env` is the member's environment."""
    module, before = scratch / "users-own-env.cjs", env.get("NODE_OPTIONS")
    require = f"--require {json.dumps(str(module), ensure_ascii=False)}"
    options = f"{require} {before}" if before else require
    return {"NODE_OPTIONS": options}, {module: (_MODULE % json.dumps(before)).encode()}
