"""The redactor against how vendors say that their keys look: a table of public shapes, filled with no real key.

Each row is a service, and its key as a pattern of runs: `x` any letter or digit, `h` a hexadecimal digit, `U` a capital
or a digit, `b` base64, `u` URL-safe base64, `d` a digit, each with its number.
"""

from __future__ import annotations

import random
import re
import string
import sysconfig
from pathlib import Path

import pytest

from teamchat.core.text.redact import redact_shapes
from tests.program import ROOT

LETTERS = string.ascii_letters + string.digits
CLASSES = {
    "x": LETTERS,
    "h": "0123456789abcdef",
    "U": string.ascii_uppercase + string.digits,
    "b": LETTERS + "+/",
    "u": LETTERS + "-_",
    "d": string.digits,
}
COMMONEST = {
    "Anthropic": "sk-ant-api03-{u93}AA",
    "OpenAI project": "sk-proj-{u74}T3BlbkFJ{u74}",
    "OpenAI older": "sk-{x48}",
    "Google API": "AIza{u35}",
    "Google OAuth client": "GOCSPX-{u28}",
    "GitHub classic": "ghp_{x36}",
    "GitHub fine-grained": "github_pat_{x22}_{x59}",
    "GitHub app": "ghs_{x36}",
    "GitLab personal": "glpat-{u20}",
    "GitLab deploy": "gldt-{u20}",
    "Slack bot": "xoxb-{d12}-{d12}-{x24}",
    "Slack webhook": "hooks.slack.com/services/T{U8}/B{U8}/{x24}",
    "AWS access key": "AKIA{U16}",
    "AWS secret": 'aws_secret_access_key = "{b40}"',
    "Azure storage": "AccountKey={b86}==",
    "Azure client secret": "{x3}8Q~{u34}",
    "Hugging Face": "hf_{x34}",
    "teamchat": "tct_{h32}",
    "npm": "npm_{x36}",
    "PyPI": "pypi-AgEIcHlwaS5vcmc{u60}",
    "Docker": "dckr_pat_{u27}",
    "Stripe": "sk_live_{x24}",
    "Stripe test": "sk_test_{x24}",
    "SendGrid": "SG.{u22}.{u43}",
    "Twilio": "SK{h32}",
    "Mailgun": "key-{h32}",
    "Telegram": "{d10}:AA{u33}",
    "Discord bot": "MT1{x23}.{u6}.{u38}",
    "Vault": "hvs.{u24}",
    "Redis address": "redis://:{x16}@cache:6379",
    "Postgres address": "postgres://app:{x16}@db/x",
    "JSON web token": "eyJ{u20}.eyJ{u30}.{u43}",
    "PEM": "-----BEGIN PRIVATE KEY-----\n{b64}\n{b20}\n-----END PRIVATE KEY-----",
}
MORE = {
    "GitHub OAuth": "gho_{x36}",
    "GitLab runner": "glrt-{u20}",
    "GitLab trigger": "glptt-{h40}",
    "GitLab CI job": "glcbt-{h2}_{u20}",
    "Slack user": "xoxp-{d12}-{d12}-{d12}-{h32}",
    "Slack app": "xapp-1-A{U10}-{d13}-{h64}",
    "AWS temporary": "ASIA{U16}",
    "AWS Bedrock": "ABSK{b110}=",
    "Azure DevOps": "{x52}JQQJ99{x26}",
    "OpenRouter": "sk-or-v1-{h64}",
    "Groq": "gsk_{x52}",
    "xAI": "xai-{x80}",
    "Perplexity": "pplx-{x48}",
    "Replicate": "r8_{x37}",
    "NVIDIA": "nvapi-{u64}",
    "Pinecone": "pcsk_{x6}_{x64}",
    "LangSmith": "lsv2_pt_{h32}_{h10}",
    "ElevenLabs": "sk_{h48}",
    "Stripe restricted": "rk_live_{x24}",
    "Stripe webhook": "whsec_{x32}",
    "Mailchimp": "{h32}-us21",
    "Resend": "re_8{x7}_{x24}",
    "DigitalOcean": "dop_v1_{h64}",
    "DigitalOcean OAuth": "doo_v1_{h64}",
    "Vault batch": "hvb.{u140}",
    "Shopify": "shpat_{h32}",
    "Linear": "lin_api_{x40}",
    "Notion": "secret_{x43}",
    "Notion new": "ntn_{x46}",
    "Figma": "figd_{u40}",
    "Atlassian": "ATATT3xFfGF0{u180}={h8}",
    "Databricks": "dapi{h32}",
    "Heroku": "HRKU-AA{u58}",
    "New Relic": "NRAK-{U27}",
    "PlanetScale": "pscale_tkn_{u43}",
    "Grafana service": "glsa_{x32}_{h8}",
    "Grafana Cloud": "glc_ey{b80}",
    "Terraform": "{x14}.atlasv1.{u67}",
    "Supabase": "sbp_{h40}",
    "Supabase secret": "sb_secret_{u31}",
    "Postman": "PMAK-{h24}-{h34}",
    "Doppler": "dp.pt.{x43}",
    "Pulumi": "pul-{h40}",
    "RubyGems": "rubygems_{h48}",
    "Sentry": "sntrys_ey{b120}",
    "Sentry user": "sntryu_{h64}",
    "Square": "sq0atp-{u22}",
    "Airtable": "pat{x14}.{h64}",
    "Netlify": "nfp_{x36}",
    "Vercel Blob": "vercel_blob_rw_{x16}_{x30}",
    "Render": "rnd_7{x27}",
    "Fly.io": "fo1_{u43}",
    "Tailscale": "tskey-auth-{x12}CNTRL-{x32}",
    "SonarQube": "squ_{h40}",
    "Contentful": "CFPAT-{u43}",
    "Buildkite": "bkua_{h40}",
    "CircleCI": "CCIPAT_{x22}_{h40}",
    "JFrog": "AKCp{x69}",
    "Dynatrace": "dt0c01.{U24}.{U64}",
    "Google refresh": "1//0{u60}",
    "1Password": "ops_ey{b260}",
    "Dropbox": "sl.{u140}",
    "Cloudflare origin": "v1.0-{h24}-{h146}",
    "Discord webhook": "discord.com/api/webhooks/{d18}/{u68}",
    "age": "AGE-SECRET-KEY-1{U58}",
    "MongoDB address": "mongodb+srv://app:{x12}@cluster0.example.net",
    "AMQP address": "amqp://:{x12}@queue",
}
RUN = re.compile(r"\{([xhUbud])(\d+)\}")


def filled(shape: str, chance: random.Random) -> tuple[str, list[str]]:
    """A made-up key of that shape, and its random runs."""
    runs: list[str] = []

    def run(found: re.Match[str]) -> str:
        runs.append("".join(chance.choices(CLASSES[found[1]], k=int(found[2]))))
        return runs[-1]

    return RUN.sub(run, shape), runs


@pytest.mark.parametrize("shape", (COMMONEST | MORE).values(), ids=(COMMONEST | MORE).keys())
def test_no_run_of_a_public_shape_is_left(shape: str) -> None:
    chance = random.Random(shape)  # noqa: S311 (no secret)
    for around in ("{}", "KEY={}\n", '{{"key": "{}"}}', "run it with {}, then go on", "- `{}`"):
        key, runs = filled(shape, chance)
        clean, count = redact_shapes(around.format(key))
        secret = max(runs, key=len)
        assert secret not in clean, clean
        assert (count, len(clean)) == (1, len(around.format(key)))


ORDINARY = """
redis://:$REDIS_PASSWORD@cache redis://:${PW}@cache redis://localhost:6379 at 10:AAAB and 12345678:AA
hvs.vault.md, s.split, key-value-00000000, secret_santa_2024_list_of_names_and_more_words_here, re_compiled_patterns
patience.0123456789, data-us2 and 550e8400-e29b-41d4-a716-446655440000-us1, sk_learn_estimators, SKU0123456789
Module.method.function_name_that_is_rather_long_and_goes_on, Object_Name_With_Words.length.another_long_attribute_name
v1.0-beta, sl.append(x), dapi_client, r8_register, pul-requests, npm_lifecycle_event, 1//08 of it, fw_update_started
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 a94a8fe5ccb19ba61c4c0873d391e987982fbbd3
"""


def test_ordinary_words_that_begin_like_keys_stay() -> None:
    assert redact_shapes(ORDINARY) == (ORDINARY, 0)


MOST_IN_A_THOUSAND = 0.1
"""Lines with a false alarm; 1 is what is promised."""


def test_code_and_documents_have_hardly_a_false_alarm() -> None:
    """This repository and a part of the standard library: 190,000 lines."""
    library = Path(sysconfig.get_path("stdlib"))
    files = [*ROOT.glob("teamchat/**/*.py"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), *library.glob("*.py")]
    found, lines = list[str](), 0
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        lines += text.count("\n")
        pairs = zip(text.split("\n"), redact_shapes(text)[0].split("\n"), strict=True)
        found += [f"{file.name}: {line}" for line, clean in pairs if line != clean]
    assert lines > 100_000
    assert 1000 * len(found) / lines < MOST_IN_A_THOUSAND, found
