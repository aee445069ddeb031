"""Untracked files that are the user's secrets, by their names or their permissions."""

from __future__ import annotations

import re
from pathlib import Path

from teamchat.patterns import regex

_NAMES = regex(
    r"""
    \.env(\..+|rc)? | .+\.env
    | .+\.(pem|key|p12|pfx|jks|keystore|ppk|kdbx|asc|gpg|ovpn)
    | id_(rsa|dsa|ecdsa|ed25519)(_sk)?
    | \.?netrc | _netrc | \.pgpass | \.my\.cnf | \.npmrc | \.pypirc | \.htpasswd | \.git-credentials | \.dockercfg
    | \.?credentials?(\..+)? | .+[._-]credentials?(\.json)? | client_secret.*\.json | service[._-]?account.*\.json
    | secrets?(\.(ya?ml|json|toml|ini|txt|env))? | kubeconfig | .+\.tfvars(\.json)? | terraform\.tfstate(\.backup)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SAMPLES = regex(r".*\.(example|sample|template|dist)", re.IGNORECASE)
_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".gcloud"})
_USUAL = 0o022


def is_private(path: str, bits: int, umask: int) -> bool:
    """Whether an untracked file is left out: its owner keeps it from others, or its name is one of secrets."""
    *folders, name = path.split("/")
    kept = 0o666 & ~umask & 0o077 & ~bits
    named = _NAMES.fullmatch(name) and not _SAMPLES.fullmatch(name)
    return bool(kept or named or not _FOLDERS.isdisjoint(folders))


def umask() -> int:
    """The umask of this process, which only a change of it would tell where there is no `/proc`."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    except (OSError, ValueError):
        pass
    return _USUAL
