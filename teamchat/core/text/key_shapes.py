"""The shapes of the keys of well-known services, as their vendors describe them: a prefix, and the text after it.

`INSIDE` has those without a fixed beginning.
"""

from __future__ import annotations

BASE64 = r"[A-Za-z0-9+/=]"
URL_SAFE = r"[A-Za-z0-9_-]"
SPACE = r"(?:\s|\\+[nrt])"  # also as JSON has it
PRIVATE_KEY = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
TO_ITS_END = rf"(?:[\w\s+/=\\:,.()@<>]++|-(?!----)){{0,100000}}+-----END {PRIVATE_KEY}"  # a key has few hyphens
SHAPES: tuple[tuple[str, str], ...] = (
    ("sk-", rf"(?=[a-z_-]{{0,40}}+[A-Z0-9]){URL_SAFE}{{16,}}"),  # Anthropic, OpenAI, OpenRouter, DeepSeek; no CSS class
    *(
        (f"sk-{kind}-", rf"(?=[a-z_-]{{0,40}}+[A-Z0-9]){URL_SAFE}{{20,}}")
        for kind in ("ant", "proj", "svcacct", "admin", "or")
    ),
    ("AQ.", rf"(?=[A-Za-z_-]{{0,40}}+[0-9]){URL_SAFE}{{30,}}"),  # Google, new
    ("cio", r"(?=[A-Za-z]{0,31}+[0-9])[A-Za-z0-9]{32}(?![A-Za-z0-9])"),  # crates.io
    ("ATBB", r"[A-Za-z0-9]{24,}"),  # Bitbucket
    *((f"vc{kind}_", r"(?=[A-Za-z]*[0-9])[A-Za-z0-9]{24,}") for kind in "piark"),  # Vercel
    *((f"ph{kind}_", r"(?=[A-Za-z]*[0-9])[A-Za-z0-9]{30,}") for kind in "xs"),  # PostHog
    ("tgp_v1_", rf"{URL_SAFE}{{30,}}"),  # Together
    ("fw_", r"(?=[A-Za-z]*[0-9])[A-Za-z0-9]{20,}"),  # Fireworks
    ("sgp_", r"[A-Za-z0-9_]{40,}"),  # Sourcegraph
    ("api_org_", r"[A-Za-z0-9]{30,}"),  # Hugging Face
    *((f"{kind}k.ey", rf"{URL_SAFE}{{20,}}\.{URL_SAFE}{{16,}}") for kind in "sp"),  # Mapbox
    ("oy2", r"(?=[a-z]*[0-9])[a-z0-9]{43}\b"),  # NuGet
    ("LTAI", r"(?=[A-Za-z]{0,19}+[0-9])[A-Za-z0-9]{16,20}(?![A-Za-z0-9])"),  # Alibaba
    ("AKID", r"(?=[A-Za-z]{0,31}+[0-9])[A-Za-z0-9]{32}(?![A-Za-z0-9])"),  # Tencent
    ("EAA", r"(?=[A-Za-z]{0,99}+[0-9])[A-Za-z0-9]{60,}"),  # Facebook
    ("rdme_", r"[a-z0-9]{60,}"),  # ReadMe
    ("SWMTKN-1-", r"[a-z0-9]{40,}-[a-z0-9]{20,}"),  # Docker Swarm
    ("jina_", rf"{URL_SAFE}{{40,}}"),
    ("tvly-", rf"(?=[a-z_-]{{0,40}}+[A-Z0-9]){URL_SAFE}{{24,}}"),  # Tavily
    ("ntfy_", r"tk_[a-z0-9]{28,}"),
    ("tk_", r"(?=[a-z]*[0-9])[a-z0-9]{29}\b"),  # ntfy
    ("AIza", rf"{URL_SAFE}{{30,}}"),  # Google, with the next two
    ("GOCSPX-", rf"{URL_SAFE}{{20,}}"),
    ("ya29.", rf"{URL_SAFE}{{30,}}"),
    *((f"gh{kind}_", r"[A-Za-z0-9]{30,}") for kind in "pousr"),  # GitHub
    ("github_pat_", r"[A-Za-z0-9_]{30,}"),
    *(
        (f"gl{kind}-", rf"{URL_SAFE}{{18,}}") for kind in ("pat", "rt", "dt", "ptt", "oas", "cbt", "soat", "agent")
    ),  # GitLab
    *((f"xox{kind}-", r"[A-Za-z0-9-]{10,}") for kind in "abeoprs"),  # Slack, with the next two
    ("xapp-", r"[0-9]-[A-Za-z0-9-]{16,}"),
    ("hooks.slack.com/services/", r"[A-Za-z0-9/]{20,}"),
    ("AKIA", r"(?=[A-Z]{0,15}+[0-9])[A-Z0-9]{16}"),  # AWS, with the next three
    ("ASIA", r"(?=[A-Z]{0,15}+[0-9])[A-Z0-9]{16}"),
    ("ABSK", rf"{BASE64}{{100,}}"),
    *(
        (name, rf"[\\\"' ]{{0,4}}[=:][\\\"' ]{{0,4}}(?P<value>{BASE64}{{40}})(?!{BASE64})")
        for name in ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey")
    ),
    ("AccountKey=", rf"(?P<value>{BASE64}{{60,}})"),  # Azure
    ("tct_", r"[a-f0-9]{32}"),  # the token of a turn of teamchat's own
    ("hf_", r"[A-Za-z0-9]{30,}"),  # Hugging Face
    *((start, r"[A-Za-z0-9]{40,}") for start in ("gsk_", "xai-", "csk-", "pplx-")),  # Groq, xAI, Cerebras, Perplexity
    ("r8_", r"[A-Za-z0-9]{37,}"),  # Replicate
    ("nvapi-", rf"{URL_SAFE}{{60,}}"),  # NVIDIA
    ("pcsk_", r"[A-Za-z0-9_]{60,}"),  # Pinecone
    *((f"lsv2_{kind}_", r"[a-f0-9]{32}_[a-f0-9]{10}") for kind in ("pt", "sk")),  # LangSmith
    ("sk_", r"[a-f0-9]{48}\b"),  # ElevenLabs
    ("npm_", r"[A-Za-z0-9]{36}"),
    ("pypi-", rf"{URL_SAFE}{{50,}}"),
    ("rubygems_", r"[a-f0-9]{48}"),
    ("CLOJARS_", r"[a-z0-9]{60}"),
    *((f"dckr_{kind}_", rf"{URL_SAFE}{{20,}}") for kind in ("pat", "oat")),  # Docker
    *((f"{kind}k_{mode}_", r"[A-Za-z0-9]{16,}") for kind in "sr" for mode in ("live", "test")),  # Stripe, with the next
    ("whsec_", r"[A-Za-z0-9+/]{24,}"),
    ("SG.", rf"{URL_SAFE}{{22}}\.{URL_SAFE}{{43}}"),  # SendGrid
    ("key-", r"[a-f0-9]{32}\b"),  # Mailgun
    ("SK", r"[a-f0-9]{32}\b"),  # Twilio
    ("re_", r"(?=[A-Za-z]*[0-9])[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),  # Resend
    *((f"do{kind}_v1_", r"[a-f0-9]{64}") for kind in "por"),  # DigitalOcean
    *((f"hv{kind}.", rf"{URL_SAFE}{{24,}}") for kind in "sbr"),  # HashiCorp Vault
    *((f"shp{kind}_", r"[a-fA-F0-9]{32}") for kind in ("at", "ca", "pa", "ss")),  # Shopify
    ("lin_api_", r"[A-Za-z0-9]{40}"),  # Linear
    ("secret_", r"[A-Za-z0-9]{43}\b"),  # Notion, with the next
    ("ntn_", r"[A-Za-z0-9]{40,}"),
    ("figd_", rf"{URL_SAFE}{{40,}}"),  # Figma
    *((f"AT{kind}TT3", r"[A-Za-z0-9_=-]{50,}") for kind in "AC"),  # Atlassian
    ("dapi", r"[a-f0-9]{32}\b"),  # Databricks
    ("HRKU-", rf"{URL_SAFE}{{36,}}"),  # Heroku
    ("NRAK-", r"[A-Z0-9]{27}\b"),  # New Relic
    *((f"pscale_{kind}_", r"[A-Za-z0-9_.=-]{32,}") for kind in ("tkn", "pw", "oauth")),  # PlanetScale
    ("glsa_", r"[A-Za-z0-9]{32}_[a-f0-9]{8}"),  # Grafana, with the next
    ("glc_", rf"{BASE64}{{32,}}"),
    ("sbp_", r"[a-f0-9]{40}"),  # Supabase, with the next
    ("sb_secret_", rf"{URL_SAFE}{{20,}}"),
    ("PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),  # Postman
    *((f"dp.{kind}.", r"[A-Za-z0-9]{40,}") for kind in ("pt", "st", "ct", "sa", "scim", "audit")),  # Doppler
    ("pul-", r"[a-f0-9]{40}"),  # Pulumi
    ("sntrys_", rf"{BASE64}{{40,}}"),  # Sentry, with the next
    ("sntryu_", r"[a-f0-9]{64}"),
    *((f"sq0{kind}-", rf"{URL_SAFE}{{22,}}") for kind in ("atp", "csp")),  # Square
    ("pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{64}"),  # Airtable
    ("nfp_", r"[A-Za-z0-9]{36,}"),  # Netlify
    ("vercel_blob_rw_", r"[A-Za-z0-9_]{30,}"),
    ("rnd_", r"(?=[A-Za-z]*[0-9])[A-Za-z0-9]{28,}"),  # Render
    ("fo1_", rf"{URL_SAFE}{{43}}"),  # Fly.io, with the next
    ("fm2_", rf"{BASE64}{{100,}}"),
    *((f"tskey-{kind}-", r"[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}") for kind in ("auth", "api", "client")),  # Tailscale
    *((f"sq{kind}_", r"[a-f0-9]{40}") for kind in "pua"),  # SonarQube
    ("CFPAT-", rf"{URL_SAFE}{{43}}"),  # Contentful
    ("bkua_", r"[a-f0-9]{40}"),  # Buildkite
    ("CCIPAT_", r"[A-Za-z0-9]{22}_[a-f0-9]{40}"),  # CircleCI
    ("AKCp", r"[A-Za-z0-9]{69}"),  # JFrog
    ("dt0c01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),  # Dynatrace
    ("1//0", rf"{URL_SAFE}{{40,}}"),  # a refresh token of Google
    ("ops_ey", rf"{BASE64}{{200,}}"),  # 1Password
    ("sl.", rf"{URL_SAFE}{{130,}}"),  # Dropbox
    ("v1.0-", r"[a-f0-9]{24}-[a-f0-9]{100,}"),  # Cloudflare
    ("discord.com/api/webhooks/", r"[0-9]{17,20}/[A-Za-z0-9_-]{60,}"),
    ("AGE-SECRET-KEY-1", r"[0-9A-Z]{50,}"),
    # JSON web tokens: a run of letters is looked at from its beginning only
    ("ey", rf"(?<!-ey){URL_SAFE}{{10,}}+\.ey{URL_SAFE}{{10,}}+\.{URL_SAFE}{{10,}}"),
)
"""How well-known keys begin and go on. `value` is the secret where that is less than the whole.

Each is found by its beginning, as plain text; what follows is bounded, or read once: the cost is linear. The match, or
its beginning, lies in a run of at least `SHORTEST_RUN` characters of `RUN`.
"""
RUN = r"[\w.~+/=:-]"
SHORTEST_RUN = 15

_TO_ITS_LINES = r"(?:[^P]++|P(?!uTTY-User|rivate-Lines: )){0,20000}+Private-Lines: [0-9]{1,4}"
PRIVATE_KEYS = (
    ("-----BEGIN ", PRIVATE_KEY + TO_ITS_END),
    (
        "PuTTY-User-Key-File-",
        rf"[0-9]: {_TO_ITS_LINES}(?:{SPACE}++(?!Private-){BASE64}++)*+(?:{SPACE}++Private-(?:MAC|Hash): [0-9a-f]++)?",
    ),
)
OPEN_PRIVATE_KEYS = (  # keys without an end: whatever looks like more of the key belongs to it
    "-----BEGIN ",
    rf"{PRIVATE_KEY}(?:{SPACE}*+{BASE64}{{20,}}+)*+(?:{SPACE}*+{BASE64}++\Z)?",
)
ADDRESSES = (  # user:password or :password in an address, except a template's placeholders
    "://",
    r"(?P<value>(?!\$?[{(<])[^/\s:@\"'\\]*+:(?!\$?[{(<]|\$\w+@)[^/\s@\"'\\]++)(?=@)",
)

GLUED = frozenset({"AKIA", "AIza", "ATBB", "hf_", "LTAI"})
"""Beginnings that are short or only letters, but that no word contains together with the rest of the key."""

_END = rf"(?!{URL_SAFE})"
INSIDE: tuple[tuple[str, str], ...] = (
    (r":AA", rf"(?<![0-9])[0-9]{{8,10}}:AA{URL_SAFE}{{32,34}}{_END}"),  # Telegram
    (r"_", r"(?<![A-Za-z0-9])[1-3][A-Za-z0-9]{26}_(?=[A-Za-z]*[0-9])[A-Za-z0-9]{20,22}(?![A-Za-z0-9])"),  # ngrok
    (r"-us[0-9]", r"(?<![a-z0-9])[a-f0-9]{32}-us[0-9]{1,2}\b"),  # Mailchimp
    (r"\.atlasv1\.", rf"(?<![A-Za-z0-9])[A-Za-z0-9]{{14}}\.atlasv1\.{URL_SAFE}{{60,}}"),  # Terraform
    (r"Q~", r"(?<![\w~.-])[\w~.-]{3}[0-9]Q~[\w~.-]{31,34}(?![\w~.-])"),  # Azure, with the next
    (  # a JSON web token to which letters are glued
        r"\.ey",
        rf"(?<![\w\\-])(?:(?!eyJ)[\w-])*+(?P<value>eyJ{URL_SAFE}{{10,}}+\.ey{URL_SAFE}{{10,}}+\.{URL_SAFE}{{10,}})",
    ),
    (r"JQQJ99", r"(?<![A-Za-z0-9])[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}(?![A-Za-z0-9])"),
    (  # Discord
        rf"\.{URL_SAFE}{{6}}\.{URL_SAFE}{{27}}",
        rf"(?<!{URL_SAFE})[MNO](?=[A-Za-z]*[0-9]){URL_SAFE}{{23,25}}\.{URL_SAFE}{{6}}\.{URL_SAFE}{{27,38}}{_END}",
    ),
)
"""Well-known keys that do not begin with a fixed text: a fixed part of each, which is found fast, and the whole."""
