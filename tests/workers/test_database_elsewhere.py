"""A database of another machine: one that proves its name by a certificate, over TLS. Here it has a second loopback."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from tests.workers.hosts import Lab
from tests.workers.postgres import cluster

pytestmark = pytest.mark.workers
PLACE = "127.0.0.2"
MAX = 'name = "max"\nagent = "writer"\nhost = "any"'


def certificate(folder: Path, place: str) -> tuple[Path, Path]:
    """A key, and a certificate by which it proves that it is at that address."""
    key, proof = folder / f"{place}.key", folder / f"{place}.crt"
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=db", "-days", "2")
    words = ("-addext", f"subjectAltName=IP:{place}", "-keyout", str(key), "-out", str(proof))
    subprocess.run((*made, *words), check=True, capture_output=True)
    return key, proof


def free_port() -> int:
    with socket.socket() as place:
        place.bind((PLACE, 0))
        return int(place.getsockname()[1])


def test_turns_go_over_a_database_that_proves_its_name(tmp_path: Path) -> None:
    with cluster() as postgres:
        database, port = postgres.database().partition("?")[0], free_port()
        name = database.rpartition("/")[2]
        key, proof = certificate(postgres.folder, PLACE)
        other = certificate(tmp_path, "127.0.0.3")[1]
        postgres.stop()
        postgres.port = port
        rules = postgres.owned(postgres.folder / "data" / "pg_hba.conf")
        rules.write_text(f"{rules.read_text()}hostssl all all {PLACE}/32 trust\n")
        files = (f"ssl_cert_file={postgres.owned(proof)}", f"ssl_key_file={postgres.owned(key)}")
        postgres.options = (f"listen_addresses={PLACE}", "ssl=on", *files)
        readable = tmp_path / "root.crt"
        readable.write_bytes(proof.read_bytes())
        postgres.start()
        url = f"postgresql://postgres@{PLACE}:{port}/{name}?sslmode=verify-full&sslrootcert="
        lab = Lab(tmp_path / "lab", f"{url}{readable}")
        try:
            host = lab.host("alpha").signing()
            host.offers({"writer": [host.agent("echo one")]}).worker().ready()
            lab.team(MAX)
            host.trusted()
            sent = lab.cli("send", "[NEXT:max] Hi")
            assert (sent.code, sent.out) == (0, "max:\none\n\n"), sent.err
            false = lab.cli("hosts", env={"TEAMCHAT_DATABASE": f"{url}{other}"})
            assert (false.code, "does not answer" in false.err) == (11, True), false.err
            assert "Traceback" not in false.err
        finally:
            lab.close()
