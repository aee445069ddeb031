"""Which untracked files are taken for secrets by their names."""

from __future__ import annotations

import pytest

from teamchat.core.checkpoint.private import is_private

SECRETS = (
    ".env", ".env.local", ".envrc", "prod.env", "server.pem", "tls.key", "AuthKey_1.p8", "a.pkcs12", "vault.kdbx",
    "id_rsa", "id_ed25519_sk", "deploy_rsa", "github_ed25519", "id_rsa.bak", "id_rsa.old", ".env.bak", "id_rsa~",
    "ID_RSA.BAK", "server.pem.backup", "key.pem.orig.bak", "token.txt", "token", "tokens.txt", ".token",
    "github_token.txt", "access-token", "api_key.txt", "apikey", "API-KEYS.txt", "private_key", "private-key.txt",
    "password.txt", "passwords.csv", "passwd", "db_password.txt", ".secrets", ".secret", "secrets.txt", "secrets.yaml",
    "secret.properties", ".vault-token", ".vault_pass", "vault_pass.txt", ".s3cfg", ".boto", ".dockerconfigjson",
    "sftp-config.json", "filezilla.xml", ".remote-sync.json", ".mylogin.cnf", "credentials", "aws_credentials",
    ".dev.vars", ".dev.vars.staging", "auth.json", "tokens.json", "api_keys.json", "deploy_key", "deploy-key.txt",
    "signing_key", "gcp-sa.json", "sa-key.json", ".bash_history", ".zsh_history", ".psql_history", ".python_history",
    "client_secret_1.json", "terraform.tfstate", "prod.tfvars", ".npmrc", ".netrc", ".ssh/config", "a/.aws/config",
)  # fmt: skip
OTHERS = (
    "get-token", "reset-password.md",
    "token.py", "design-tokens.css", "tokens.css", "history.txt", "usa.json", "auth.py", "hostkeys.py", "vars",
    "tokenizer.txt", "token_test.go", "secrets.py", "secret.md", "password.py",
    "passwords.html", "PasswordForm.tsx", "reset-password.md.j2", "keys.py", "monkey.txt", "api_keys.py",
    ".env.example", "secrets.yaml.template", "id_rsa.pub", "deploy_rsa.pub", "rsa.py", "notes.bak", "a.txt~",
    "environment.yml", "env.py", "keyboard.key.md", "README", "private.py", "tokenize", "key", "public.crt",
    "credential_store.py", "xrsa", "universa", "auth.ts", "config.json", "backup", ".gitignore", ".bak", "~",
)  # fmt: skip


@pytest.mark.parametrize("path", SECRETS)
def test_a_usual_name_of_a_secret_is_left_out_in_any_folder(path: str) -> None:
    assert is_private(path, 0o644, 0o022)
    assert is_private(f"deep/er/{path}", 0o644, 0o022)


@pytest.mark.parametrize("path", OTHERS)
def test_what_only_speaks_of_secrets_is_recorded(path: str) -> None:
    assert not is_private(path, 0o644, 0o022)
