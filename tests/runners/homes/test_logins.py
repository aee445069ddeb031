"""Whether a login is there, as far as variables and the presence of files tell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from teamchat.runners.agent_events import Failure, FailureKind
from teamchat.runners.base import Login, Runner
from teamchat.runners.claude.login import claude_login
from teamchat.runners.claude.runner import ClaudeRunner
from teamchat.runners.codex.runner import CodexRunner
from teamchat.runners.gemini.runner import GeminiRunner
from teamchat.runners.homes.logins import login_variables, with_source
from teamchat.runners.pipe import PipeRunner

RUNNERS: dict[str, Runner] = {"claude": ClaudeRunner(), "codex": CodexRunner(), "gemini": GeminiRunner()}


class Home:
    """A user's home with nothing in it, and a project in it where the member works."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cwd = folder / "project"
        self.cwd.mkdir()

    def add(self, name: str, text: str = "") -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def login(self, agent: str, env: Mapping[str, str] | None = None) -> Login:
        login = RUNNERS[agent].login(self.cwd, {"HOME": str(self.folder), **(env or {})})
        assert login is not None
        return login


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.parametrize(
    ("agent", "hint"), [("claude", "claude auth login"), ("codex", "codex login"), ("gemini", "gemini")]
)
def test_without_a_key_or_a_file_there_is_none(home: Home, agent: str, hint: str) -> None:
    login = home.login(agent)
    assert (login.there, login.hint) == (False, hint)


@pytest.mark.parametrize("agent", RUNNERS)
def test_without_a_home_there_is_none(home: Home, agent: str) -> None:
    login = RUNNERS[agent].login(home.cwd, {})
    assert login is not None
    assert login.there is False


@pytest.mark.parametrize(
    ("agent", "key"),
    [
        ("claude", "ANTHROPIC_API_KEY"),
        ("claude", "ANTHROPIC_AUTH_TOKEN"),
        ("claude", "CLAUDE_CODE_OAUTH_TOKEN"),
        ("codex", "CODEX_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
    ],
)
def test_a_key_is_a_login_and_never_told(home: Home, agent: str, key: str) -> None:
    assert home.login(agent, {key: "sk-123"}) == Login(True, f"{key} is set", variables=(key,))
    assert home.login(agent, {key: ""}).there is False


@pytest.mark.parametrize(
    ("agent", "file"),
    [
        ("claude", ".claude/.credentials.json"),
        ("codex", ".codex/auth.json"),
        ("gemini", ".gemini/oauth_creds.json"),
        ("gemini", ".gemini/gemini-credentials.json"),
    ],
)
def test_a_credential_file_is_a_login(home: Home, agent: str, file: str) -> None:
    home.add(file)
    assert home.login(agent) == Login(True, f"{home.folder / file} is there", variables=())


@pytest.mark.parametrize(
    ("agent", "variable", "file"),
    [
        ("claude", "CLAUDE_CONFIG_DIR", ".credentials.json"),
        ("codex", "CODEX_HOME", "auth.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/oauth_creds.json"),
    ],
)
def test_a_cli_whose_folder_is_elsewhere_is_looked_for_there(home: Home, agent: str, variable: str, file: str) -> None:
    elsewhere = {variable: str(home.folder / "elsewhere")}
    assert home.login(agent, elsewhere).there is False
    home.add(f"elsewhere/{file}")
    assert home.login(agent, elsewhere).there is True
    assert home.login(agent).there is False


@pytest.mark.parametrize(
    ("agent", "file"),
    [
        ("claude", ".claude.json"),
        ("claude", ".claude/settings.json"),
        ("gemini", ".gemini/settings.json"),
        ("gemini", ".gemini/.env"),
        ("gemini", ".env"),
        ("gemini", "project/.env"),
        ("gemini", "project/.gemini/.env"),
    ],
)
def test_a_file_that_may_name_a_login_makes_it_unknown(home: Home, agent: str, file: str) -> None:
    home.add(file)
    login = home.login(agent)
    assert login.there is None
    assert str(home.folder / file) in login.reason


@pytest.mark.parametrize(
    ("agent", "variable"),
    [
        ("claude", "CLAUDE_CODE_USE_BEDROCK"),
        ("claude", "CLAUDE_CODE_USE_VERTEX"),
        ("gemini", "GOOGLE_GENAI_USE_VERTEXAI"),
        ("gemini", "GOOGLE_GEMINI_BASE_URL"),
    ],
)
def test_another_service_has_a_login_of_its_own(home: Home, agent: str, variable: str) -> None:
    assert home.login(agent, {variable: "true"}).there is None


@pytest.mark.parametrize(
    ("agent", "env", "files", "variables"),
    [
        ("claude", ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"], [], ("ANTHROPIC_API_KEY",)),
        ("claude", ["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"], [], ("ANTHROPIC_AUTH_TOKEN",)),
        ("claude", ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"], [], ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")),
        ("claude", ["CLAUDE_CODE_OAUTH_TOKEN"], [".claude/.credentials.json"], ("CLAUDE_CODE_OAUTH_TOKEN",)),
        ("claude", ["ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK"], [], None),
        ("codex", ["CODEX_API_KEY", "OPENAI_API_KEY"], [".codex/auth.json"], ("CODEX_API_KEY",)),
        ("codex", ["OPENAI_API_KEY"], [".codex/auth.json"], ()),
        ("gemini", ["GEMINI_API_KEY", "GOOGLE_API_KEY"], [], ("GEMINI_API_KEY",)),
        ("gemini", ["GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"], [], ("GEMINI_API_KEY",)),
        ("gemini", ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"], [], ("GOOGLE_API_KEY",)),
        ("gemini", ["GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"], [], None),
        ("gemini", ["GEMINI_API_KEY", "GOOGLE_GENAI_USE_GCA"], [], None),
        ("gemini", ["GEMINI_API_KEY"], [".gemini/oauth_creds.json"], None),
    ],
)
def test_of_several_logins_the_one_is_known_that_the_cli_sends(
    home: Home, agent: str, env: list[str], files: list[str], variables: tuple[str, ...] | None
) -> None:
    """As the CLIs were observed to do; Gemini's settings, which are not opened, choose between a key and a file."""
    for file in files:
        home.add(file)
    assert home.login(agent, dict.fromkeys(env, "true")).variables == variables


def test_arguments_of_a_member_may_bring_a_login(home: Home) -> None:
    env = {"HOME": str(home.folder), "CODEX_API_KEY": "k"}
    assert login_variables(RUNNERS["codex"], home.cwd, env, ()) == ("CODEX_API_KEY",)
    assert login_variables(RUNNERS["codex"], home.cwd, env, ("-c", 'model_provider="p"')) is None


REFUSED = Failure(FailureKind.LOGIN, "is not logged in", "claude auth login")


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        (None, REFUSED),
        ((), Failure(FailureKind.LOGIN, "is not logged in; its stored login was refused", "claude auth login")),
        (("A",), Failure(FailureKind.LOGIN, "is not logged in; A is set and was refused: correct or unset it")),
        (
            ("A", "B"),
            Failure(FailureKind.LOGIN, "is not logged in; A and B are set and were refused: correct or unset them"),
        ),
    ],
)
def test_a_refused_login_says_where_it_is_from(variables: tuple[str, ...] | None, told: Failure) -> None:
    assert with_source(REFUSED, variables) == told


def test_another_failure_and_none_say_nothing_of_the_login() -> None:
    limit = Failure(FailureKind.RATE_LIMIT, "reached a rate limit or quota")
    assert with_source(limit, ("A",)) is limit
    assert with_source(None, ("A",)) is None


class TestClaude:
    def test_on_macos_the_keychain_may_hold_one(self, tmp_path: Path) -> None:
        assert claude_login({"HOME": str(tmp_path)}, "darwin").there is None
        assert claude_login({"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "k"}, "darwin").there is True


class TestCodex:
    def test_its_own_configuration_is_no_login(self, home: Home) -> None:
        home.add(".codex/config.toml", 'model = "gpt-5.5"\n')
        assert home.login("codex").there is False

    def test_openai_api_key_is_not_looked_at_by_itself(self, home: Home) -> None:
        """As observed: with it alone, requests carry no key."""
        login = home.login("codex", {"OPENAI_API_KEY": "k"})
        assert login.there is False
        assert login.hint == "printenv OPENAI_API_KEY | codex login --with-api-key"

    @pytest.mark.parametrize(("env", "there"), [({"OPENAI_API_KEY": "k"}, True), ({"CODEX_API_KEY": "k"}, False)])
    def test_a_model_provider_names_its_key(self, home: Home, env: dict[str, str], *, there: bool) -> None:
        home.add(".codex/config.toml", 'model_provider = "p"\n[model_providers.p]\nenv_key = "OPENAI_API_KEY"\n')
        login = home.login("codex", env)
        assert login.there is there
        assert login.variables == (("OPENAI_API_KEY",) if there else None)
        assert "OPENAI_API_KEY" in login.reason

    @pytest.mark.parametrize("config", ['model_provider = "ollama"', 'model_provider = "p"\n[model_providers.p]'])
    def test_a_provider_without_a_key_may_need_none(self, home: Home, config: str) -> None:
        home.add(".codex/config.toml", config)
        assert home.login("codex").there is None

    @pytest.mark.parametrize(
        "config",
        [
            'model_provider = "openai"',
            'model_provider = "p"\n[model_providers.p]\nrequires_openai_auth = true',
            'cli_auth_credentials_store = "file"',
            "model_provider = 3",
        ],
    )
    def test_codex_s_own_login_counts_with(self, home: Home, config: str) -> None:
        home.add(".codex/config.toml", config)
        assert home.login("codex").there is False
        home.add(".codex/auth.json")
        assert home.login("codex").there is True

    def test_a_keyring_may_hold_one(self, home: Home) -> None:
        home.add(".codex/config.toml", 'cli_auth_credentials_store = "keyring"')
        assert home.login("codex").there is None


class TestGemini:
    def test_google_api_key_is_for_vertex_only(self, home: Home) -> None:
        """As observed: with it alone, it asks for an auth method and exits."""
        login = home.login("gemini", {"GOOGLE_API_KEY": "k"})
        assert login.there is False
        assert "GOOGLE_API_KEY" in login.reason
        assert home.login("gemini", {"GOOGLE_API_KEY": "k", "GOOGLE_GENAI_USE_VERTEXAI": "true"}).there is True


def test_nothing_is_known_of_another_program(tmp_path: Path) -> None:
    assert PipeRunner().login(tmp_path, {}) is None
