"""Keys, signatures and the files that list them, with OpenSSH itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from teamchat.core.dispatch.order import Signed, Unreadable
from teamchat.core.dispatch.signing import ENDS, HOME, NO_KEY, ORDERS, HomeKeys, SigningKey, check_signed, fingerprint
from teamchat.core.errors import HostUnavailable


def made(path: Path) -> SigningKey:
    key = SigningKey(path, "kim@laptop")
    key.make()
    return key


def signers(folder: Path, key: SigningKey, who: str = "alpha") -> Path:
    path = folder / "signers"
    path.write_text(f"{who} {key.public()}\n")
    return path


def test_a_signature_holds_for_its_text_its_kind_and_its_signer(tmp_path: Path) -> None:
    key = made(tmp_path / "keys" / "alpha")
    signed, listed = key.sign("ü\n", ENDS), signers(tmp_path, key)
    check_signed(signed, "alpha", listed, ENDS)
    for value, by, what in (
        (Signed("u\n", signed.signature), "alpha", ENDS),
        (signed, "beta", ENDS),
        (signed, "alpha", ORDERS),
        (Signed(signed.text, ""), "alpha", ENDS),
        (Signed(signed.text, "\0"), "alpha", ENDS),
    ):
        with pytest.raises(Unreadable):
            check_signed(value, by, listed, what)
    with pytest.raises((Unreadable, HostUnavailable)):
        check_signed(signed, "\0", listed, ENDS)
    listed.unlink()
    with pytest.raises(Unreadable):
        check_signed(signed, "alpha", listed, ENDS)
    os.mkfifo(listed)
    with pytest.raises(HostUnavailable, match="signers cannot be used"):
        check_signed(signed, "alpha", listed, ENDS)


@pytest.mark.parametrize(
    "script", ["exit 1", "kill -9 $$", "exit 127", "echo 'No user exists for uid 1' >&2; exit 255"]
)
def test_a_program_that_fails_is_no_wrong_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    key = made(tmp_path / "one")
    signed, listed = key.sign("text", ENDS), signers(tmp_path, key)
    program = tmp_path / "ssh-keygen"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    with pytest.raises(HostUnavailable, match="ssh-keygen"):
        check_signed(signed, "alpha", listed, ENDS)


def test_a_key_that_cannot_be_made_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ssh-keygen"
    program.write_text("#!/bin/sh\necho 'No user exists for uid 1' >&2; exit 255\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    with pytest.raises(HostUnavailable, match="ssh-keygen: No user exists for uid 1"):
        HomeKeys(tmp_path / "home", local=True).line()


def test_a_key_that_is_gone_is_not_made_anew_in_silence(tmp_path: Path) -> None:
    key = made(tmp_path / "one")
    key.path.unlink()
    with pytest.raises(HostUnavailable, match="is gone"):
        key.sign("text", ENDS)
    assert not key.path.exists()


def test_a_key_is_made_once_and_for_its_user_alone(tmp_path: Path) -> None:
    key = made(tmp_path / "keys" / "home")
    public = key.public()
    assert made(key.path).public() == public
    assert key.path.stat().st_mode & 0o777 == 0o600
    assert key.path.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in key.path.parent.iterdir()] == ["home"]


def test_a_fingerprint_is_that_of_openssh(tmp_path: Path) -> None:
    key = made(tmp_path / "home")
    said = subprocess.run(("ssh-keygen", "-l", "-f", str(key.path)), capture_output=True, text=True, check=True)
    assert fingerprint(key.public()) == said.stdout.split()[1]


@pytest.mark.parametrize(
    "text",
    ["", "ssh-ed25519", "ssh-ed25519 x", "ssh-rsa AAAA=C3NzaC1lZDI1NTE5AA", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\nx"],
)
def test_what_is_no_key_has_no_fingerprint(text: str) -> None:
    assert fingerprint(text) is None


def test_the_list_of_trusted_hosts_keeps_what_a_person_has_written(tmp_path: Path) -> None:
    home, one = HomeKeys(tmp_path, local=False), made(tmp_path / "one").public()
    mine = f"# of the farm\nbeta,gamma {one} by hand\nalpha {one} an older one\n"
    home.trusted_hosts.write_text(mine)
    other = made(tmp_path / "two").public()
    home.trust("alpha", other)
    assert home.trusted_hosts.read_text() == f'{mine.partition("alpha")[0]}alpha namespaces="{ENDS}" {other}\n'
    assert (home.of("alpha"), home.of("delta")) == (other, None)
    assert home.trusted_hosts.stat().st_mode & 0o777 == 0o600


def test_a_host_is_trusted_with_its_key_or_by_a_choice_without_one(tmp_path: Path) -> None:
    key = made(tmp_path / "one").public()
    near, far = HomeKeys(tmp_path, local=True), HomeKeys(tmp_path, local=False)
    for home in (near, far):
        for shown in (key, ""):
            assert home.trouble("alpha", shown) == "it is not trusted here: teamchat hosts trust alpha"
        with pytest.raises(Unreadable, match="not trusted here any more"):
            home.check_end(Signed("{}"), "alpha")
    near.trust("alpha", key)
    assert (near.trouble("alpha", key), far.trouble("alpha", key)) == (None, None)
    assert "trusted with a key, and has none" in str(near.trouble("alpha", ""))
    assert "not the one that" in str(near.trouble("alpha", made(tmp_path / "two").public()))
    assert near.trouble("alpha", "ssh-ed25519 x") == "it shows a key that cannot be read"
    with pytest.raises(Unreadable):
        near.check_end(Signed("{}"), "alpha")
    near.trust("alpha", "")
    assert near.trusted_hosts.read_text() == f"{NO_KEY}alpha\n"
    assert near.trouble("alpha", "") is None
    assert "trusted without a key, and has one" in str(near.trouble("alpha", key))
    assert "only with a database of this machine" in str(far.trouble("alpha", ""))
    near.check_end(Signed("{}"), "alpha")
    with pytest.raises(Unreadable):
        far.check_end(Signed("{}"), "alpha")


def test_an_order_is_signed_for_a_host_that_signs(tmp_path: Path) -> None:
    home = HomeKeys(tmp_path, local=True)
    line = home.line()
    assert home.order("text", "alpha") == Signed("text")
    home.trust("alpha", made(tmp_path / "one").public())
    listed = tmp_path / "allowed_signers"
    listed.write_text(f"{line}\n")
    check_signed(home.order("text", "alpha"), HOME, listed, ORDERS)


def test_without_openssh_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        HostUnavailable, match="orders for hosts are signed with ssh-keygen, which is not installed; install OpenSSH"
    ):
        HomeKeys(tmp_path, local=True).line()


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostUnavailable, match="cannot be used"):
        HomeKeys(tmp_path / "file", local=True).line()
    with pytest.raises(HostUnavailable, match="cannot be used"):
        HomeKeys(tmp_path / "file", local=True).trust("alpha", "key")
