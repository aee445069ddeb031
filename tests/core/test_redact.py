from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.redact import Redactor

KEYS = (
    "sk-ant-api03-" + "a1B2" * 10,
    "sk-proj-" + "Zz9_" * 8,
    "AIza" + "x" * 35,
    "ghp_" + "A1" * 18,
    "github_pat_" + "A1_" * 12,
    "xoxb-123456789012-abcdef",
    "AKIA" + "ABCDEFGH12345678",
    "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJlLXBhcnQ",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
)


@pytest.mark.parametrize("key", KEYS)
def test_well_known_shapes_are_taken_out(key: str) -> None:
    clean = Redactor({})(f"before {key} after")
    assert key not in clean
    assert clean.startswith("before ***")
    assert clean.endswith("** after")
    assert len(clean) == len(f"before {key} after")


def test_an_address_loses_its_password_and_stays_an_address() -> None:
    assert Redactor({})("see https://kai:hunter2@example.org/x") == "see https://***********@example.org/x"


def test_values_of_secret_variables_are_taken_out_plain_and_as_json() -> None:
    secret = 'p"w\\d\u00e9\nx'
    redact = Redactor({"DB_PASSWORD": secret, "EDITOR": "vim-is-here", "A_TOKEN": "1"})
    for form in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        assert form not in redact(f"x {form} y")
    assert redact("vim-is-here 1") == "vim-is-here 1"  # no secret's name; too short to be one


def test_ordinary_text_stays() -> None:
    text = "sk-learn, AIzawa, ghp, ask-ant, https://example.org:80/a@b, key=value, 2024-01-01 kai@example.org"
    assert Redactor({})(text) == text


@given(st.text(), st.text(min_size=6), st.text())
def test_a_secret_never_survives_and_lengths_and_lines_stay(before: str, secret: str, after: str) -> None:
    clean = Redactor({"MY_SECRET": secret})(before + secret + after)
    assert len(clean) == len(before + secret + after)
    assert clean.count("\n") == (before + secret + after).count("\n")
    assert secret not in clean or not secret.strip("*\r\n")
