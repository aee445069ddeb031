"""Signatures of what goes through the database of hosts, by OpenSSH (`ssh-keygen -Y`, from 8.1 on).

Whoever can write to the database can forge no order and no end of a turn. Home has a key, which `allowed_signers` of
each host names; a host has a key, which `trusted_hosts` at home names. Both files have the format of OpenSSH.
"""

from __future__ import annotations

import os
import socket
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory

from msgspec import Struct

from teamchat.core.dispatch.order import Signed, Unreadable
from teamchat.core.errors import HostUnavailable
from teamchat.core.files.folders import config_dir
from teamchat.core.files.whole_files import locked_beside, put_in_place, write_private
from teamchat.core.team.programs import OTHERWISE, Unusable, find_program
from teamchat.patterns import regex
from teamchat.runners.child.command import run
from teamchat.runners.untrusted.regular_files import read_regular

PROGRAM = "ssh-keygen"
PASSED = ("PATH", "HOME", "TMPDIR")
KEYS, SIGNERS, TRUSTED = "keys", "allowed_signers", "trusted_hosts"  # names in the configuration folder
HOME = "home"  # who signs orders
ORDERS, ENDS = "teamchat-order", "teamchat-end"
"""The purpose of a signature, as its namespace: a signature of an order is not valid for an end."""
LONGEST_S = 20.0
LARGEST = 1 << 20  # bytes of a list of keys
LONGEST_SIGNATURE = 1 << 14
REFUSED = "Could not verify signature"  # printed for a wrong signature; other failures read differently
NO_KEY = "# without a key: "  # in the list of hosts, before the name of a host trusted without a key
INSTALL = "install OpenSSH (Debian: apt-get install openssh-client)"
_KEY = regex(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]{1,40} [A-Za-z0-9+/=]{16,2000}")


class SigningKey(Struct, frozen=True):
    """A private key in a file, with the comment `whose`. It has no passphrase."""

    path: Path
    whose: str

    def make(self) -> None:
        """Make the key where there is none. Raises `HostUnavailable`."""
        if not self.path.exists():
            with _told(self.path.parent), TemporaryDirectory(dir=_made(self.path.parent)) as folder:
                new = Path(folder, "key")
                _ran("-q", "-t", "ed25519", "-N", "", "-C", self.whose, "-f", str(new))
                with suppress(FileExistsError):  # another process was faster
                    self.path.hardlink_to(new)

    def public(self) -> str:
        """Return its type and its public half, without the comment. Raises `HostUnavailable`."""
        return " ".join(self._ran("-y").split()[:2])

    def sign(self, text: str, what: str) -> Signed:
        """Sign the text with a signature of the kind `what`. Raises `HostUnavailable`."""
        return Signed(text, self._ran("-Y", "sign", "-q", "-n", what, given=text.encode()))

    def _ran(self, *words: str, given: bytes = b"") -> str:
        if not self.path.exists():
            raise HostUnavailable(
                f"the key {self.path} is gone: put it back, or have a new one made and trusted (teamchat help workers)"
            )
        return _ran(*words, "-f", str(self.path), given=given)


def check_signed(signed: Signed, by: str, signers: Path, what: str) -> None:
    """Raise `Unreadable` if it is not signed by a key that the file has for `by`, or `HostUnavailable`."""
    if not signed.signature or len(signed.signature) > LONGEST_SIGNATURE:
        raise Unreadable("it is not signed")
    _listed(signers)
    with _told("the folder of temporary files"), NamedTemporaryFile("w") as file:
        file.write(signed.signature)
        file.flush()
        words = ("-Y", "verify", "-f", str(signers), "-I", by, "-n", what, "-s", file.name)
        try:
            _ran(*words, given=signed.text.encode())
        except _Refused:
            raise Unreadable(f"it is not signed with a key that {signers} has for {by}") from None


def fingerprint(public: str) -> str | None:
    """Return how people compare keys, as OpenSSH shows it; None for no public key as `SigningKey.public` gives it."""
    try:
        key = b64decode(public.split(" ")[1], validate=True) if _KEY.fullmatch(public) else None
    except ValueError:
        key = None
    return f"SHA256:{b64encode(sha256(key).digest()).decode().rstrip('=')}" if key else None


class HomeKeys(Struct, frozen=True):
    """The key for home's orders, and the hosts whose ends it takes.

    A host without a key is trusted by its name, and only with a `local` database.
    """

    folder: Path
    local: bool

    @property
    def trusted_hosts(self) -> Path:
        return self.folder / TRUSTED

    def line(self) -> str:
        """Return the line for `allowed_signers` of the hosts. Raises `HostUnavailable`."""
        self._key.make()
        return f'{HOME} namespaces="{ORDERS}" {self._key.public()} {self._key.whose}'

    @property
    def _key(self) -> SigningKey:
        return SigningKey(self.folder / KEYS / HOME, f"{os.environ.get('USER') or os.geteuid()}@{socket.gethostname()}")

    def of(self, host: str) -> str | None:
        """Return the key of a host that is trusted, "" for one without a key; None if it is not trusted.

        Raises `HostUnavailable`.
        """
        for line in _listed(self.trusted_hosts):
            if line == f"{NO_KEY}{host}":
                return ""
            if line.split()[:1] == [host] and (match := _KEY.search(line)):
                return match[0]
        return None

    def trust(self, host: str, public: str) -> None:
        """Take ends of the host that are signed with that key, and with no other one ("": not signed).

        Raises `HostUnavailable`.
        """
        with _told(self.trusted_hosts), locked_beside(_made(self.folder) / TRUSTED) as new:
            there = _listed(self.trusted_hosts)
            lines = [line for line in there if line.split()[:1] != [host] and line != f"{NO_KEY}{host}"]
            lines.append(f'{host} namespaces="{ENDS}" {public}' if public else f"{NO_KEY}{host}")
            write_private(new, "".join(f"{line}\n" for line in lines).encode())
            put_in_place(new, self.trusted_hosts)

    def trouble(self, host: str, key: str) -> str | None:
        """Say why no order goes to a host that shows that key ("": it has none); None if one does."""
        try:
            trusted = self.of(host)
        except HostUnavailable as error:
            return str(error)
        if key and fingerprint(key) is None:
            return "it shows a key that cannot be read"
        if trusted is None:
            return f"it is not trusted here: teamchat hosts trust {host}"
        if trusted != key:
            what = f"its key is not the one that {self.trusted_hosts} has" if trusted and key else "it is trusted"
            what += "" if trusted and key else " with a key, and has none" if trusted else " without a key, and has one"
            return f"{what}; if you know why: teamchat hosts trust {host}"
        return None if key or self.local else "it has no key, which goes only with a database of this machine"

    def order(self, text: str, host: str) -> Signed:
        """Sign an order as it goes to the host. Raises `HostUnavailable`."""
        return self._key.sign(text, ORDERS) if self.of(host) else Signed(text)

    def check_end(self, end: Signed, host: str) -> None:
        """Raise `Unreadable` for an end that the host has not signed, or `HostUnavailable`."""
        trusted = self.of(host)
        if trusted is None:
            raise Unreadable("it is not trusted here any more")
        if trusted or not self.local:
            check_signed(end, host, self.trusted_hosts, ENDS)


class HostKeys(Struct, frozen=True):
    """The key for a host's ends, and the signers of the orders that it takes. `public` is the key it began with."""

    key: SigningKey
    signers: Path
    public: str

    def check_order(self, order: Signed) -> None:
        """Raise `Unreadable` for an order that none of the homes has signed, or `HostUnavailable`.

        A turn whose end could not be signed is not begun.
        """
        check_signed(order, HOME, self.signers, ORDERS)
        if self.key.public() != self.public:
            raise HostUnavailable(f"the key {self.key.path} is another one than when the worker began: start it anew")

    def end(self, text: str) -> Signed:
        """Sign the end of a turn as it goes home. Raises `HostUnavailable`."""
        return self.key.sign(text, ENDS)


def host_keys(name: str) -> HostKeys:
    """Load the keys of the host `name`. Raises `HostUnavailable` where no home may give it orders."""
    folder = config_dir()
    signers = folder / SIGNERS
    if not any(line.split()[:1] == [HOME] for line in _listed(signers)):
        raise HostUnavailable(
            f"nobody may give this machine orders: put what `teamchat hosts --key` says at home into {signers}",
            "teamchat help workers",
        )
    key = SigningKey(folder / KEYS / f"host-{name}", name)
    key.make()
    return HostKeys(key, signers, key.public())


def _listed(path: Path) -> list[str]:
    """Read the lines of a list of keys; none where it is not there. Raises `HostUnavailable`."""
    with _told(path):
        try:
            return read_regular(path, LARGEST).decode().splitlines()
        except FileNotFoundError:
            return []


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


@contextmanager
def _told(place: Path | str) -> Iterator[None]:
    """Raise `HostUnavailable` for what cannot be read or written there."""
    try:
        yield
    except Unreadable:
        raise
    except (OSError, ValueError) as error:
        raise HostUnavailable(f"{place} cannot be used: {getattr(error, 'strerror', None) or error}") from None


class _Refused(HostUnavailable):
    """The program has found that a signature is not right."""


def _ran(*words: str, given: bytes = b"") -> str:
    """Run the program without a terminal, and return its output. Raises `HostUnavailable`, such as `_Refused`."""
    program = find_program(PROGRAM, os.environ)
    if isinstance(program, Unusable):
        why = program.why.removesuffix(f"; {OTHERWISE}")
        raise HostUnavailable(f"orders for hosts are signed with {PROGRAM}, which {why}; {INSTALL}")
    env = {name: os.environ[name] for name in PASSED if name in os.environ} | {"LC_ALL": "C"}
    try:
        done = run((program, *words), Path("/"), env, LONGEST_S, given)
    except (OSError, ValueError) as error:
        raise HostUnavailable(f"{PROGRAM} cannot be used: {error}") from None
    if done.code is None:
        raise HostUnavailable(f"{PROGRAM} has not answered for {LONGEST_S:.0f} s")
    said = done.out.decode(errors="replace")
    if done.code:
        told = done.err.decode(errors="replace").strip() or said.strip()
        why = f"{PROGRAM}: {told.splitlines()[-1] if told else f'exit code {done.code}'}"
        raise _Refused(why) if REFUSED in said else HostUnavailable(why)
    return said
