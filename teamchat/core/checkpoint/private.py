"""Untracked files that are the user's secrets, by their names or their permissions."""

from __future__ import annotations

import re
from pathlib import Path

from teamchat.patterns import regex

# The files in the signatures of gitrob (github.com/michenriksen/gitrob), without databases and sources; files for
# passwords and tokens in the manuals of these programs; and the usual names of such notes.
_NAMES = regex(
    r"""
    \.env(\..+|rc)? | .+\.env
    | .+\.(pem|key|p8|pk8|p12|pkcs12|pfx|jks|jceks|bks|keystore|keypair|ppk|kdbx?|psafe3|asc|gpg|ovpn|tblk|bek|fve)
    | .+\.(keychain|agilekeychain|kwallet)
    | .+_(rsa|dsa|ecdsa|ed25519)(_sk)?
    | \.?netrc | _netrc | \.pgpass | \.my\.cnf | \.mylogin\.cnf | \.npmrc | \.pypirc | \.htpasswd | proftpdpasswd
    | \.git-credentials | \.dockercfg | \.dockerconfigjson | \.s3cfg | \.boto | \.(muttrc|msmtprc|esmtprc|fetchmailrc)
    | \.vault-token | \.?vault[._-]?pass(word)?(\.txt)? | \.remote-sync\.json | sftp-config\.json
    | (filezilla|recentservers|sitemanager)\.xml | secret_token\.rb
    | \.?credentials?(\..+)? | .+[._-]credentials?(\.json)? | client_secret.*\.json | service[._-]?account.*\.json
    | \.?secrets?(\.(ya?ml|json|toml|ini|txt|env|cfg|conf|properties))? | kubeconfig | .+\.tfvars(\.json)?
    | terraform\.tfstate(\.backup)?
    | \.?((access|auth|api|bearer)[._-]?)?(tokens?|passwords?|passwd|api[._-]?keys?|private[._-]?key)
    | (.+[._-])?(tokens?|passwords?|passwd|api[._-]?keys?|private[._-]?key)\.(txt|csv|json)
    | \.dev\.vars(\..+)? | auth\.json | (.+[._-])?(deploy|signing|ssh|host|service|master)[._-]?keys?(\.(txt|json))?
    | (.+[._-])?sa([._-]key)?\.json | \.?(.+[._-])?histfile | \.(.+_)?history
    """,
    re.IGNORECASE | re.VERBOSE,
)
_COPIED = regex(r"(\.(bak|backup|old|orig|save|copy)|~)+$", re.IGNORECASE)  # endings that a copy's name gets
_SAMPLES = regex(r".*\.(example|sample|template|dist)", re.IGNORECASE)
_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".gcloud"})
_USUAL = 0o022


def is_private(path: str, bits: int, umask: int) -> bool:
    """Whether an untracked file is left out: its owner keeps it from others, or its name is one of secrets."""
    return bool(0o666 & ~umask & 0o077 & ~bits) or has_secret_name(path)


def has_secret_name(path: str) -> bool:
    """Whether a path is named as people name their secrets."""
    *folders, name = path.split("/")
    named = _NAMES.fullmatch(_COPIED.sub("", name)) and not _SAMPLES.fullmatch(name)
    return bool(named) or not _FOLDERS.isdisjoint(folders)


def umask() -> int:
    """Read the umask of this process, or assume the usual one without `/proc`: only a change of it would tell."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    except (OSError, ValueError):
        pass
    return _USUAL
