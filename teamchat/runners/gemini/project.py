"""Keeps Gemini from the project's `.env` and `.gemini/settings.json` (observed at 0.55.1, 0.58.0 and 0.61.0).

Gemini loads the nearest `.gemini/.env` or `.env` upwards of its folder, also with `--skip-trust`. A variable in it can
take the user's key elsewhere, replace the system prompt or, by BASH_ENV, run the project's commands. No flag switches
that off, and the variables of a file cannot be listed beforehand. So Node loads a module before Gemini. In that process
the files do not exist, whenever they are written and whatever they contain, and a broken settings file stops no turn.
The user's files, in the home folder, are read as in the plain CLI.

This module also brings settings below the user's, for which Gemini has no flag: no clean-up of sessions, and teamchat's
git server for a member that has it.
"""

from __future__ import annotations

import json
from pathlib import Path

from teamchat.runners.base import Job

NOWHERE = "/of-teamchat-in-this-process-alone/settings.json"
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

const hides = %s;  // what a project has
const brought = %s;  // a file that is nowhere else: its path and its text

function isHidden(name) {
  if (!hides || typeof name !== "string") return false;
  const file = path.resolve(name);
  return (path.basename(file) === ".env" || file.endsWith(path.join("/.gemini", "settings.json"))) && !isTheUsers(file);
}

fs.existsSync = (name) => name === brought.path || (!isHidden(name) && existsSync(name));
fs.readFileSync = (name, ...options) => {
  if (name === brought.path) return brought.text;
  if (!isHidden(name)) return readFileSync(name, ...options);
  throw Object.assign(new Error(`ENOENT: no such file or directory, open '${name}'`), { code: "ENOENT" });
};
require("node:module").syncBuiltinESMExports();
"""


def other_files(job: Job, defaults: str) -> tuple[dict[str, str], dict[Path, bytes]]:
    """Build the variables that make Node load the module first, and the module's file.

    `defaults` are settings below the user's. Gemini takes them only from a file that nobody but root can change, or
    that is not there when it looks who owns it.
    """
    module, before = job.scratch / "users-own-env.cjs", job.env.get("NODE_OPTIONS")
    require = f"--require {json.dumps(str(module), ensure_ascii=False)}"
    variables = {
        "NODE_OPTIONS": f"{require} {before}" if before else require,
        "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": NOWHERE,
    }
    values = (before, not job.project_settings, {"path": NOWHERE, "text": defaults})
    return variables, {module: (_MODULE % tuple(map(json.dumps, values))).encode()}
