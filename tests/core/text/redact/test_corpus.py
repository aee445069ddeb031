"""The redactor against a corpus: secrets by shape and by name, the ways to disguise one, and ordinary code.

No value here is anybody's: each is drawn at random in the shape that a service or a program documents.
"""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest

from teamchat.core.text.clean import told
from teamchat.core.text.redact import Redactor, redact_shapes
from teamchat.runners.environment import changed_variables
from tests.core.routing.marker_texts import grows_linearly
from tests.core.text.test_key_shapes import COMMONEST, MORE, MOST_IN_A_THOUSAND, filled
from tests.program import ROOT

NAMED = {
    "Authorization Bearer": "Authorization: Bearer «{u40}»",
    "Authorization Basic": "Authorization: Basic «{x24}»",
    "Authorization Token": "authorization: Token «{h40}»",
    "Authorization without a scheme": "Authorization: «{h32}»",
    "Authorization Negotiate": "Authorization: Negotiate «YII{b60}»",
    "Authorization in JSON": '{"Authorization": "Bearer «{u40}»"}',
    "Authorization in a dictionary": "headers['Authorization'] = 'ApiKey «{x32}»'",
    "Authorization of a short word": "Authorization: Bearer «hunter{x2}»",
    "Proxy-Authorization": "Proxy-Authorization: Basic «{x28}»",
    "AWS signature": "Authorization: AWS4-HMAC-SHA256 Credential=x/eu, SignedHeaders=host, Signature=«{h64}»",
    "Digest": 'Authorization: Digest username="kai", realm="x", response="«{h32}»"',
    "Bearer in a sentence": "I called it with bearer «{u36}4aB» and it worked",
    "x-api-key": "x-api-key: «{x32}»",
    "X-Api-Key of curl": "curl -H 'X-Api-Key: «{h32}»' localhost",
    "api-key of Azure": "api-key: «{h32}»",
    "X-Auth-Token": "X-Auth-Token: «{x32}»",
    "PRIVATE-TOKEN": "PRIVATE-TOKEN: «{u20}»",
    "X-Vault-Token": "X-Vault-Token: «s7.{x24}»",
    "Ocp-Apim-Subscription-Key": "Ocp-Apim-Subscription-Key: «{h32}»",
    "Cookie": "Cookie: «sid={x26}»",
    "Cookies": "cookie: «theme=dark; session={h32}»",
    "Set-Cookie": "Set-Cookie: «sessionid={x32}; HttpOnly; Path=/»",
    "Cookie in JSON": '{"Cookie": "«sid={x26}»"}',
    "netrc": "machine example.org login kai password «hun{x8}»",
    "netrc in lines": "machine example.org\n  login kai\n  password «correcthorse»",
    "password in an ini": "password = «hunt3r{x6}»",
    "password of letters": "mysql?user=kai&password=«correcthorse»&ssl=1",
    "pwd in YAML": "pwd: «p4ss{x6}»",
    "password in JSON": '{"user": "kai", "password": "«Tr0ub4dor&3»"}',
    "password in JSON in JSON": '{"text": "{\\"password\\": \\"«Tr0ub4dor{x3}»\\"}"}',
    "password in TOML": 'db_password = "«s3cr3t-{x6}»"',
    "password in YAML": "  db_password: '«s3cr3t!{x6}»'",
    "digits": '"password": "«48151623»"',
    "a sentence": "passphrase: '«4 words in it»'",
    "camel case": 'dbPassword: "«Zx9{x8}»"',
    "Python": 'connect(user="kai", passwd="«geheim$1{x4}»")',
    "Ruby": ":password => '«geheim$1{x4}»'",
    "Go": 'password := "«geheim$1{x4}»"',
    "SQL": "Server=db;Uid=kai;Pwd=«p@ss{x6}»;",
    "export": "export DB_PASSWORD=«correcthorse»",
    "NAME_KEY": "ENCRYPTION_KEY=«{x32}»",
    "NAME_TOKEN": "MY_SERVICE_TOKEN=«{x24}»",
    "NAME_SECRET": "CLIENT_SECRET=«{u32}»",
    "NAME_SECRET quoted": "CLIENT_SECRET='«{x31}7»'",
    "NAME_PASSWORD": "PGPASSWORD=«letmeinplease» psql",
    "SECRET_KEY of Django": "SECRET_KEY = '«django-insecure-{x40}1»'",
    "api_key": "api_key: «{h32}»",
    "apiKey": '"apiKey": "«{x39}1»"',
    "client_secret": "client_secret=«{x40}»&grant_type=x",
    "access_token": '{"access_token":"«{u60}1»","expires_in":3600}',
    "refresh_token in an address": "refresh_token=«{u60}1»",
    "npmrc": "//registry.example.org/:_authToken=«{h8}-{h4}-{h12}»",
    "auth of Docker": '{"auths": {"x": {"auth": "«{x31}1=»"}}}',
    "an option": "tool --password «hunt3r{x5}» --verbose",
    "an option with a sign": "tool --api-key=«{x31}7»",
    "curl -u": "curl -u kai:«hunt3r{x4}» example.org",
    "XML": "<server><password>«hunt3r{x4}»</password></server>",
    "SharedAccessKey": "Endpoint=sb;SharedAccessKeyName=x;SharedAccessKey=«{b43}=»",
    "sshpass": "sshpass -p «hunt3r{x4}» ssh kai@example.org",
    "sshpass glued": "sshpass -p'«hunt3r{x4}»' ssh kai@example.org",
    "mysql": "mysqldump --host db -ukai -p«hunt3r{x4}» shop",
    "mariadb": "mariadb -p«hunt3r{x4}»",
    "docker login": "docker login -u kai -p «hunt3r{x4}» registry.example.org",
    "a block of YAML": "password: |\n  «hunt3r{x4}»",
    "a folded block of YAML": "api_token: >-\n    «{x31}7»",
    "Kubernetes": "- name: DB_PASSWORD\n  value: «hunt3r{x4}»",
    "Kubernetes quoted": 'env:\n- name: API_TOKEN\n  value: "«{x31}7»"',
    "Kubernetes in JSON": '{"name": "CLIENT_SECRET", "value": "«{x31}7»"}',
    "HTML": "&lt;input value=&quot;x&quot; password=&quot;«hunt3r{x4}»&quot;&gt;",
    "webhook": "TEAMS_WEBHOOK_URL=«{x8}-{h32}»",
}
SHAPED = {
    "Google AQ.": "AQ.Ab8{u47}",
    "crates.io": "cio{x31}7",
    "Bitbucket": "ATBB{x24}{U8}",
    "Vercel": "vcp_{x55}7",
    "PostHog": "phx_{x42}7",
    "Together": "tgp_v1_{u43}",
    "Fireworks": "fw_{x21}7",
    "ngrok": "2{x26}_{x19}7",
    "SAS": "sig={b43}%3D",
    "PuTTY": "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\n{b60}\nPrivate-MAC: {h64}",
    "Sourcegraph": "sgp_{h40}",
    "Mapbox": "sk.eyJ{u60}.{u22}",
}


def drawn(name: str) -> tuple[str, str]:
    """A text with a secret in it, and the secret."""
    chance = random.Random(name)  # noqa: S311 (no secret)
    text, _ = filled(NAMED[name], chance)
    secret = text.partition("«")[2].partition("»")[0]
    return text.replace("«", "").replace("»", ""), secret


@pytest.mark.parametrize("name", NAMED)
def test_what_its_name_calls_a_secret_is_taken_out(name: str) -> None:
    text, secret = drawn(name)
    for around in ("{}", "first\n{}\nlast\n", "- `{}`"):
        whole = around.format(text) if "{" not in text else around.replace("{}", text)
        clean, count = redact_shapes(whole)
        assert clean == whole.replace(secret, "*" * len(secret)), clean
        assert count == 1


@pytest.mark.parametrize("name", SHAPED)
def test_no_run_of_a_shape_is_left(name: str) -> None:
    text, runs = filled(SHAPED[name], random.Random(name))  # noqa: S311 (no secret)
    for around in ("{}", "KEY={}\n", '{{"key": "{}"}}', "run it with {}, then go on"):
        clean, count = redact_shapes(around.format(text))
        assert [run for run in runs if len(run) > 3 and run in clean] == [], clean
        assert (count, len(clean)) == (1, len(around.format(text)))


def made(name: str) -> str:
    return filled(COMMONEST[name], random.Random(name))[0]  # noqa: S311 (no secret)


KEYS = {name: made(name) for name in ("Anthropic", "GitHub classic", "AWS access key", "Google API", "JSON web token")}


def halves(key: str, between: str) -> str:
    return key[:20] + between + key[20:]


def wide(key: str) -> str:
    return key.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})


DISGUISES: dict[str, Callable[[str], str]] = {
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 in a sentence": lambda key: base64.b64encode(f"the key is {key}, keep it".encode()).decode(),
    "base64 for addresses": lambda key: base64.urlsafe_b64encode(f"??>{key}??".encode()).decode().rstrip("="),
    "base64 in lines": lambda key: base64.encodebytes(f"{'x' * 50} {key}".encode()).decode().strip(),
    "an address": lambda key: quote(key, safe="").replace("-", "%2D").replace("_", "%5F"),
    "every letter of an address": lambda key: "".join(f"%{ord(letter):02x}" for letter in key),
    "hexadecimal": lambda key: key.encode().hex(),
    "hexadecimal capitals": lambda key: key.encode().hex().upper(),
    "hexadecimal with colons": lambda key: key.encode().hex(":"),
    "hexadecimal with spaces": lambda key: key.encode().hex(" "),
    "hexadecimal in twos": lambda key: key.encode().hex(" ", 2),
    "hexadecimal of C": lambda key: ", ".join(f"0x{ord(letter):02x}" for letter in key),
    "entities of HTML": lambda key: "".join(f"&#{ord(letter)};" for letter in key),
    "hexadecimal entities of HTML": lambda key: "".join(f"&#x{ord(letter):X};" for letter in key),
    "an entity for each sign": lambda key: "".join(one if one.isalnum() else f"&#{ord(one)};" for one in key),
    "hexadecimal escapes": lambda key: "".join(f"\\x{ord(letter):02x}" for letter in key),
    "JSON escapes": lambda key: "".join(f"\\u{ord(letter):04x}" for letter in key),
    "JSON escapes in JSON": lambda key: json.dumps("".join(f"\\u{ord(letter):04x}" for letter in key))[1:-1],
    "a wrapped line": lambda key: halves(key, "\n"),
    "a wrapped line of Windows": lambda key: halves(key, "\r\n"),
    "a wrapped line, indented": lambda key: halves(key, "\n    "),
    "a wrapped line, quoted": lambda key: halves(key, "\n> "),
    "a wrapped line of a shell": lambda key: halves(key, "\\\n"),
    "a wrapped line in JSON": lambda key: halves(key, "\\n"),
    "two strings": lambda key: halves(key, '" + "'),
    "two strings in two lines": lambda key: halves(key, '"\n    "'),
    "a space of no width": lambda key: halves(key, "\u200b"),
    "a joiner after each letter": "\u2060".join,
    "a soft hyphen at the beginning": lambda key: key[:2] + "\u00ad" + key[2:],
    "a byte order mark": lambda key: "\ufeff" + key[:3] + "\ufeff" + key[3:],
    "a glued underscore": lambda key: f"_{key}",
    "glued underscores": lambda key: f"my_{key}_",
    "glued letters": lambda key: f"token{key}",
    "full-width letters": wide,
    "quotes": lambda key: f"'\"`{key}`\"'",
    "Markdown": lambda key: f"**{key}**",
    "a colour": lambda key: f"\x1b[31m{key}\x1b[0m",
}


@pytest.mark.parametrize("how", DISGUISES)
@pytest.mark.parametrize("name", KEYS)
def test_a_disguised_key_is_taken_out(how: str, name: str) -> None:
    key = KEYS[name]
    hidden = DISGUISES[how](key)
    if how == "base64 in lines":
        secret = max(hidden.splitlines()[1:], key=len)[4:-8]
    else:
        secret = max(
            re.split(r"[\r\n\"+ >\\]+|\\u|\\x|%", hidden) if "wrapped" in how or "strings" in how else [hidden], key=len
        )
        secret = (
            secret.strip("_*`'\"")
            .removeprefix("\x1b[31m")
            .removesuffix("\x1b[0m")
            .removeprefix("my_")
            .removeprefix("token")
        )
        secret = secret[len(secret) // 4 : -len(secret) // 4] if "base64" in how else secret
    text = f"Look at {hidden} first"
    clean, count = redact_shapes(text)
    assert secret not in clean, clean
    assert (count, len(clean)) == (1, len(text)), clean
    assert clean.startswith("Look at ")
    assert clean.endswith(" first")


@pytest.mark.parametrize("how", ["capitals", "small letters"])
def test_the_case_of_a_key_hides_nothing(how: str) -> None:
    key = KEYS["GitHub classic"].upper() if how == "capitals" else KEYS["AWS access key"].lower()
    assert redact_shapes(f"Look at {key}") == (f"Look at {'*' * len(key)}", 1)


def test_the_corpus_is_as_large_as_the_document_says() -> None:
    assert len(COMMONEST | MORE) + len(NAMED) + len(SHAPED) >= 106
    assert len(DISGUISES) + 2 >= 23


ORDINARY = """
def login(self, user, password=None, token: str = "", *, api_key=None):
    password = getpass.getpass("Password: ")
    headers = {"Authorization": f"Bearer {token}", "X-Api-Key": settings.api_key, "Cookie": self.cookies}
    self.token = next(tokens); passwd = config["password"]; secret = os.environ["CLIENT_SECRET"]
PASSWORD=$DB_PASSWORD; export TOKEN="${TOKEN}"; API_KEY=%(key)s; password: <your-password>; token: ****
The token usage is 12345, and the password must have 12 letters. sort_key = key1, primary_key=True
machine learning: log in, then give a password of your own. docker run -u 1000:1000 -u root:wheel
"input_tokens":123456,"cache_read_input_tokens":99999,"apiKeySource":"none","max_tokens=500000"
mkdir -p build/v1.2; docker run -p 8080:80 -p 127.0.0.1:81:81; ssh -p 2222 kai@db1; cp -p a1b2c3d4 old1
git log -p HEAD~3; python -m pytest -p no:cacheprovider; docker login -u kai; after login use -p or --port; mysql -p
password: |
token: >-
  see the manual
- name: PASSWORD_FILE
  value: /run/secrets/password1
- name: TOKEN_LIMIT
  value: "500000"
a &amp; b &lt; c &#39;token&#39; and &quot;password&quot; are words, 20 30 40 50 60 70 20 30 40 50 60 70 are numbers
one of the words is longest-of-them-all
next2line and python3 and Utf8Decoder
"""


def test_code_that_speaks_of_secrets_stays() -> None:
    assert redact_shapes(ORDINARY) == (ORDINARY, 0)


def test_behind_a_key_the_next_line_stays() -> None:
    key = KEYS["GitHub classic"]
    for after in ("\nDB_HOST=db1.example.org", "\nbuild2024\n", "\nHello there", '", "next1"', "\n- item2"):
        assert redact_shapes(f"KEY={key}{after}") == (f"KEY={'*' * len(key)}{after}", 1)


@pytest.mark.parametrize(
    "piece",
    [
        *("password=", 'password: "', "--password ", "key=", "pass", "<key>", "cookie: a=", "authorization: x "),
        *("41 ", "0x41, ", "&#65;", "&", "&#"),
        *("sshpass -p", "mysql ", " login ", "mysql -p", "password: |\n ", "token\n value", "token,"),
        *(
            "login a password ",
            " -u a:",
            "sig=",
            "%41",
            "\\u0041",
            "\\x41",
            "a\u200b",
            "Ａ",
            "41:",
            "41 ",
            "&#65;",
            "&",
            "QUJD",
            "QUJD\n",
        ),
        *(
            "ghp_\n",
            "sk-ant-api03-A1a1A1a1A1a1\n",
            'ghp_"+"',
            "eyJ_eyJ.",
            "PuTTY-User-Key-File-2: ",
            "Private-Lines: 1\n",
        ),
    ],
)
def test_no_disguise_is_slow(piece: str) -> None:
    assert grows_linearly(redact_shapes, piece)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("MYSQL_PWD", "correcthorse", "correcthorse"),
        ("SLACK_WEBHOOK_URL", "https://example.org/services/a1b2", "https://example.org/services/a1b2"),
        ("DATABASE_URL", "postgres://kai:correcthorse@db/x", "correcthorse"),
        ("SENTRY_DSN", "https://0123456789abcdef@example.org/7", "https://0123456789abcdef@example.org/7"),
        ("MY_CONNECTION_STRING", "Server=db;Uid=kai;Pwd=abcdef", "Server=db;Uid=kai;Pwd=abcdef"),
    ],
)
def test_a_secret_of_the_environment_is_taken_out_of_what_is_said(name: str, value: str, secret: str) -> None:
    redact = Redactor({name: value})
    assert secret not in redact(f"I was started with {value}, that is {secret}.")
    assert value not in (changed_variables({}, {name: value})[name] or "")


@pytest.mark.parametrize(
    ("name", "value"), [("PWD", "/srv/project"), ("OLDPWD", "/srv/project"), ("GIT_ASKPASS", "/bin/ask")]
)
def test_a_folder_or_a_program_of_the_environment_is_no_secret(name: str, value: str) -> None:
    assert Redactor({name: value})(f"in {value}") == f"in {value}"
    assert changed_variables({}, {name: value}) == {name: value}


@pytest.mark.parametrize(
    "how",
    [
        lambda value: base64.b64encode(value).decode(),
        lambda value: base64.b64encode(b"kai:" + value).decode(),
        lambda value: base64.b64encode(b"x" + value + b"yz").decode(),
        lambda value: value.hex(),
        lambda value: quote(value, safe=""),
    ],
)
def test_a_value_of_the_environment_is_found_in_its_encodings(how: Callable[[bytes], str]) -> None:
    hidden = how(b"correct/horse battery")
    core = hidden[8:-8]
    assert core not in Redactor({"A_SECRET": "correct/horse battery"})(f"Look: {hidden}")


UNSEEN = (
    *(
        chr(code)
        for code in (*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0))
        if chr(code) not in "\x1b\x90\x98\x9b\x9d\x9e\x9f"
    ),
    *"\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\u200d\u2060\ufeff\u00ad\u3164\ufe0f",
    *("\x1b[01;31m\x1b[K", "\x1b[m", "\x9b31m", "\x1b]0;title\x07", "\x1b]8;;x\x1b\\", "\x9d0;x\x9c", "\x1bPq\x1b\\"),
    *(
        "\x1bXs\x1b\\",
        "\x1b^p\x1b\\",
        "\x1b_a\x1b\\",
        "\x90q\x9c",
        "\x98s\x9c",
        "\x9ep\x9c",
        "\x9fa\x9c",
        "\x1b7",
        "\x1b(B",
    ),
    *("\x1b]0;a\\b\x07", "\x1bPa\\b\x1b\\", "\x1b_\\\\u0007\x1b\\", "\x90a\\b\x9c", "\x9d0;x\x07"),
)
SEEN_KEYS = {
    **KEYS,
    "a private key": "-----BEGIN PRIVATE KEY-----MIIEMIIEaB+/aB+/-----END PRIVATE KEY-----",
    "a named secret": "hunt3rhunt3r",
}


@pytest.mark.parametrize("name", SEEN_KEYS)
@pytest.mark.parametrize("ascii_only", [None, False, True], ids=["plain", "as JSON", "as JSON in ASCII"])
def test_what_no_reader_sees_hides_no_key(name: str, ascii_only: bool | None) -> None:
    key, left = SEEN_KEYS[name], []
    for sign in UNSEEN:
        for at in (2, len(key) // 2, len(key) - 2):
            hidden = f"password={key[:at]}{sign}{key[at:]} and more"
            text = hidden if ascii_only is None else json.dumps(hidden, ensure_ascii=ascii_only)
            clean = redact_shapes(text)[0]
            shown = told(clean if ascii_only is None else json.loads(clean))
            if len(clean) != len(text) or key[2:-2] in shown or not shown.endswith(" and more"):
                left.append((sign, at, clean))
    assert left == []


def test_a_value_of_the_environment_is_found_as_it_is_seen() -> None:
    redact = Redactor({"A_SECRET": "correct/horse"})
    assert [sign for sign in UNSEEN if "correct/horse" in told(redact(f"it is correct{sign}/horse, yes"))] == []


@pytest.mark.parametrize(
    "piece", ["\x1b[31m", "\x1b", "\u200b", "\x1b]0;a", "\x9d", "\\u001b]0;", "\\u001b[1", "\\\\", "\\u001bPa\\"]
)
def test_nothing_unseen_is_slow(piece: str) -> None:
    assert grows_linearly(redact_shapes, piece)


@pytest.mark.long
def test_code_in_colours_has_no_secret() -> None:
    code = "".join(file.read_text(encoding="utf-8") for file in sorted(ROOT.glob("teamchat/core/**/*.py")))
    coloured = "".join(f"\x1b[32m+{line}\x1b[m\n" for line in code.split("\n"))
    for text in (coloured, json.dumps(coloured)):
        assert redact_shapes(text)[1] < MOST_IN_A_THOUSAND * len(code.split("\n")) / 1000
