from __future__ import annotations

import json
import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.text.key_shapes import ADDRESSES, GLUED, OPEN_PRIVATE_KEYS, PRIVATE_KEYS, SHAPES
from teamchat.core.text.redact import Redactor, redact_shapes
from tests.core.routing.marker_texts import grows_linearly
from tests.trials import some

UNBOUNDED = tuple(
    {
        rest: start
        for start, rest in (*SHAPES, *PRIVATE_KEYS, OPEN_PRIVATE_KEYS, ADDRESSES)
        if re.search(r",\}|[*+]", rest)
    }.values()
)
"""The beginning of one key of each form that has no greatest length."""
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
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\nDEK-Info: AES-128-CBC,0A1B\n\nMIIE+/=\n-----END ENCRYPTED PRIVATE KEY-----",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOY\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----",
    "sk-or-v1-" + "0a1b" * 16,
    "sk-svcacct-" + "aB-_" * 20,
    "sk-" + "0123456789abcdef" * 2,
    "GOCSPX-" + "aB1_" * 6,
    "ya29." + "aB1_" * 20,
    *(f"gh{kind}_" + "A1" * 18 for kind in "ousr"),
    "glpat-" + "aB1_-" * 4,
    "glrt-" + "aB1_-" * 4,
    "xoxp-123456789012-abcdef",
    "xapp-1-A0123456789-0123456789-abcdef",
    "https://hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnop".removeprefix("https://"),
    "ASIA" + "ABCDEFGH12345678",
    "hf_" + "aB1" * 12,
    "npm_" + "aB1" * 12,
    "pypi-" + "aB1_" * 20,
    "dckr_pat_" + "aB1_" * 7,
    "sk_live_" + "aB1" * 8,
    "rk_live_" + "aB1" * 8,
    "whsec_" + "aB1/" * 8,
    "SG." + "aB" * 11 + "." + "a" * 43,
    "gsk_" + "aB1" * 17,
    "xai-" + "aB1" * 20,
    "dop_v1_" + "0a" * 32,
    "AGE-SECRET-KEY-1" + "QPZRY9X8" * 7,
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


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        ("aws_secret_access_key = ", "aB/+" * 10, "\n"),
        ('{"SecretAccessKey": "', "aB/+" * 10, '"}'),
        ("AWS_SECRET_ACCESS_KEY=", "aB/+" * 10, ""),
        ("AccountName=x;AccountKey=", "aB/+" * 21 + "a==", ";EndpointSuffix=y"),
        ("postgres://", "kai:p$ss<w", "@db/x"),
    ],
)
def test_what_names_a_secret_stays_readable(before: str, secret: str, after: str) -> None:
    assert redact_shapes(before + secret + after) == (before + "*" * len(secret) + after, 1)


@pytest.mark.parametrize(
    "before", ["\n", "\\n", "\\t", '"', "'", "=", ":", "(", "`", "\x1b[1m", "\\u001b[31m", "\x1b[m"]
)
@pytest.mark.parametrize("key", ["sk-ant-api03-" + "a1B2" * 10, "ghp_" + "A1" * 18, KEYS[7]])
def test_a_key_is_found_behind_a_line_end_a_sign_and_a_colour(before: str, key: str) -> None:
    assert redact_shapes(f"It is{before}{key}") == (f"It is{before}{'*' * len(key)}", 1)


def test_each_secret_is_counted_once() -> None:
    text = " and ".join(KEYS)
    assert redact_shapes(text)[1] == len(KEYS)
    assert redact_shapes(redact_shapes(text)[0])[1] == 0


@pytest.mark.parametrize("line_end", ["\n", "\\n", "\\\\n"])
@pytest.mark.parametrize("end", ["", "\n-----END PRIVATE KEY-----"])
def test_of_a_private_key_only_the_line_ends_stay(line_end: str, end: str) -> None:
    body = line_end.join(["-----BEGIN PRIVATE KEY-----", "MIIE" * 16, "aB+/" * 16, "aB=="])
    clean, count = redact_shapes(f"{body}{end.replace(chr(10), line_end)}")
    assert count == 1
    assert set(clean) <= set("*" + line_end)
    assert clean.count(line_end) == 3 + bool(end)


def test_a_private_key_that_holds_what_looks_like_another_key_is_taken_out_whole() -> None:
    body = "-----BEGIN RSA PRIVATE KEY-----\n+AKIAABCDEFGH12345678/+\n-----END RSA PRIVATE KEY-----"
    assert redact_shapes(body) == (re.sub(r"[^\n]", "*", body), 1)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_in_a_text_without_spaces_is_taken_out(key: str) -> None:
    text = f'{"+" * 5}"{key}"{"+" * 5}"{key}"'
    assert redact_shapes(text) == (text.replace(key, re.sub(r"[^\n]", "*", key)), 2)


def test_behind_an_open_private_key_another_key_is_taken_out_whole() -> None:
    text = f"-----BEGIN PRIVATE KEY-----\n{'MIIE' * 16}\neyJhbGciOiJIUzI1NiJ9.{'eyJzdWIiOiIxMjM0.c2lnbmF0dXJlLXBhcnQ'}"
    assert redact_shapes(text) == (re.sub(r"[^\n]", "*", text), 2)


@pytest.mark.parametrize("piece", ["\\", "x", "- ", "a\\n", "QUJD"])
def test_a_private_key_is_taken_out_in_time_in_proportion_to_it(piece: str) -> None:
    def taken_out(body: str) -> None:
        redact_shapes(f"-----BEGIN PRIVATE KEY-----{body}-----END PRIVATE KEY-----")

    assert grows_linearly(taken_out, piece)


def test_of_a_private_key_that_is_only_spoken_of_the_rest_stays() -> None:
    text = "It begins with -----BEGIN PRIVATE KEY----- and goes on. Then comes the next point, about something else."
    clean, count = redact_shapes(text)
    assert count == 1
    assert clean == text.replace("-----BEGIN PRIVATE KEY-----", "*" * 27)


@pytest.mark.parametrize(
    "text",
    [
        "class sk-estimator-doc-link and sk-toggleable__content-arrow",
        "task-Management-System-0123456789, disk-0123456789abcdefghij, mysk-0123456789abcdefghij",
        "the keyboard.eyebrows.obey, they.eyed.it",
        "git show 0123456789abcdef0123456789abcdef01234567",
        "550e8400-e29b-41d4-a716-446655440000",
        "data:image/png;base64," + "iVBORw0KGgo" * 20,
        "postgres://${USER}:${PASSWORD}@db, postgres://{user}:{password}@db, postgres://<user>:<password>@db",
        "http://[::1]:8080/a@b, ssh://git@github.com:22/x, //a:b@c",
        "aws_secret_access_key = os.environ['AWS_SECRET_ACCESS_KEY']",
        "AKIA, AIza, ghp_, npm_config_registry, hf_hub_download, xai-org, whsec_...",
        "*" * 60,
    ],
)
def test_what_only_looks_alike_stays(text: str) -> None:
    assert redact_shapes(text) == (text, 0)


@pytest.mark.parametrize(
    "piece",
    [
        *UNBOUNDED,
        "00000000:AA",
        "00000000",
        "0a-us1",
        "a.atlasv1.",
        "a1Q~",
        "aJQQJ99",
        "M1aaaaa.aaaaaa.",
        "sk-a",
        "ey-",
        "eyJ0123456789abc",
        "eyJ0123456789.",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----MIIEMIIEMIIEMIIEMIIEMIIE\n",
        "-----BEGIN PRIVATE KEY-----\\n ",
        "-----BEGIN AAAA ",
        "\\",
        "://a:b",
        "://a",
        'SecretAccessKey="',
    ],
)
def test_no_text_is_slow(piece: str) -> None:
    assert grows_linearly(redact_shapes, piece)


@pytest.mark.parametrize("before", some(["0m", "0;31m", "-", "_", "\\n", "@"], "_"))
def test_no_text_of_the_beginnings_of_keys_is_slow(before: str) -> None:
    slow = [start for start in UNBOUNDED if not grows_linearly(redact_shapes, f"{before}{start}")]
    assert slow == []


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
    assert secret not in clean or secret.isspace() or not secret.strip("*\r\n")


LONG = 128 * 1024
BEGINNINGS = sorted(
    {start for start, _ in (*SHAPES, *PRIVATE_KEYS, OPEN_PRIVATE_KEYS, ADDRESSES)} | {start.lower() for start in GLUED}
)
NAMES = ("password=", "secret", "token", "credential", "api_key", "auth", "webhook_url", "dsn", "bearer ", "cookie:")


@pytest.mark.parametrize("piece", some([*BEGINNINGS, *NAMES], "api_key", "atbb", "AWS_SECRET_ACCESS_KEY"))
def test_a_beginning_of_a_key_that_is_repeated_costs_little(piece: str) -> None:
    def seconds(size: int) -> float:
        text = (piece * size)[:size]
        begun = process_time()
        redact_shapes(text)
        return process_time() - begun

    assert min(seconds(LONG) for _ in range(2)) < 1
    assert any(seconds(2 * LONG) < 3 * seconds(LONG) + 0.05 for _ in range(3))
