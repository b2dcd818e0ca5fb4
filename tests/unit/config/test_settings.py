"""Precedence, origins, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from mainspring import config
from mainspring.core.errors import InvalidInput
from mainspring.core.model import MINUTE, SECOND


def load(
    folder: Path,
    environment: dict[str, str] | None = None,
    *,
    flags: dict[str, object] | None = None,
    arguments: dict[str, object] | None = None,
) -> config.Settings:
    return config.load(flags=flags, arguments=arguments, environment=environment or {}, folder=folder)


def refused(folder: Path, environment: dict[str, str]) -> str:
    with pytest.raises(InvalidInput) as caught:
        load(folder, environment)
    return str(caught.value)


def test_nothing_said_means_the_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path)

    assert settings.store == "sqlite:///mainspring.db"
    assert (settings.port, settings.concurrency, settings.processes) == (8321, 10, 1)
    assert (settings.lease, settings.heartbeat, settings.drain) == (30 * SECOND, 3 * SECOND, 30 * SECOND)
    assert set(settings.origins) == set(config.ABOUT)
    assert set(settings.origins.values()) == {"default"}


def test_flag_beats_argument_beats_environment_beats_file(tmp_path: Path) -> None:
    (tmp_path / "mainspring.toml").write_text('store = "sqlite:///file.db"\nport = 1\nhost = "::1"\nconcurrency = 4\n')
    environment = {
        "MAINSPRING_STORE": "sqlite:///environment.db",
        "MAINSPRING_PORT": "2",
        "MAINSPRING_HOST": "localhost",
    }

    settings = load(
        tmp_path,
        environment,
        arguments={"store": "sqlite:///argument.db", "port": 3},
        flags={"store": "sqlite:///flag.db", "port": None},
    )

    assert settings.store == "sqlite:///flag.db"
    assert settings.origins["store"] == "flag --store"
    assert (settings.port, settings.origins["port"]) == (3, "argument port=")
    assert (settings.host, settings.origins["host"]) == ("localhost", "environment MAINSPRING_HOST")
    assert (settings.concurrency, settings.origins["concurrency"]) == (4, str(tmp_path / "mainspring.toml"))


def test_the_nearest_file_upwards_counts(tmp_path: Path) -> None:
    below = tmp_path / "project" / "source"
    below.mkdir(parents=True)
    (tmp_path / "mainspring.toml").write_text("port = 1\n")
    (tmp_path / "project" / "pyproject.toml").write_text("[tool.mainspring]\nport = 2\n")
    (below / "pyproject.toml").write_text("[project]\nname = 'another'\n")

    assert load(below).port == 2


def test_an_empty_variable_is_not_set(tmp_path: Path) -> None:
    assert load(tmp_path, {"MAINSPRING_STORE": ""}).origins["store"] == "default"


def test_an_unknown_variable_names_its_neighbour(tmp_path: Path) -> None:
    assert "MAINSPRING_STROE: is no setting; did you mean MAINSPRING_STORE?" in refused(
        tmp_path, {"MAINSPRING_STROE": "x"}
    )


def test_variables_of_tests_and_of_others_are_not_ours(tmp_path: Path) -> None:
    load(tmp_path, {"MAINSPRING_TEST_ANYTHING": "x", "PATH": "/bin", "MAINSPRINGS": "1"})


def test_names_of_later_versions_are_left_alone(tmp_path: Path) -> None:
    load(tmp_path, {"MAINSPRING_BREAKER": "all"})


def test_an_unknown_name_in_a_file_says_which_file(tmp_path: Path) -> None:
    (tmp_path / "mainspring.toml").write_text("conurrency = 3\n")

    with pytest.raises(InvalidInput, match=r"mainspring\.toml: conurrency: is no setting; did you mean concurrency"):
        load(tmp_path)


def test_broken_toml_says_where(tmp_path: Path) -> None:
    (tmp_path / "mainspring.toml").write_text("port = \n")

    with pytest.raises(InvalidInput, match="no valid TOML"):
        load(tmp_path)


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    told = refused(
        tmp_path,
        {
            "MAINSPRING_PORT": "many",
            "MAINSPRING_LEASE": "soon",
            "MAINSPRING_ROLES": "api,chef",
            "MAINSPRING_MISFIRE": "never",
            "MAINSPRING_CONCURRENCY": "0",
            "MAINSPRING_STRICT_TASKS": "perhaps",
        },
    )

    for part in (
        "true or false",
        "MAINSPRING_PORT",
        "MAINSPRING_LEASE",
        "chef",
        "skip, once, all",
        "MAINSPRING_CONCURRENCY",
    ):
        assert part in told


def test_the_beat_is_a_tenth_of_the_lease_unless_set(tmp_path: Path) -> None:
    assert load(tmp_path, {"MAINSPRING_LEASE": "5m"}).heartbeat == 30 * SECOND
    assert load(tmp_path, {"MAINSPRING_LEASE": "5m", "MAINSPRING_HEARTBEAT": "1m"}).heartbeat == MINUTE


def test_a_lease_under_three_beats_is_refused(tmp_path: Path) -> None:
    load(tmp_path, {"MAINSPRING_LEASE": "3s", "MAINSPRING_HEARTBEAT": "1s"})

    assert "at least 3 beats" in refused(tmp_path, {"MAINSPRING_LEASE": "2.9s", "MAINSPRING_HEARTBEAT": "1s"})


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret\n")

    settings = load(tmp_path, {"MAINSPRING_KEY_FILE": str(tmp_path / "key")})

    assert settings.key == "s3cret"
    assert settings.origins["key"] == "environment MAINSPRING_KEY_FILE"
    assert "cannot be read" in refused(tmp_path, {"MAINSPRING_KEY_FILE": str(tmp_path / "none")})


def test_what_is_shown_hides_secrets(tmp_path: Path) -> None:
    shown = load(tmp_path, {"MAINSPRING_KEY": "s3cret", "MAINSPRING_STORE": "postgresql://ann:pass@host/db"}).shown()

    assert shown["key"] == "***"
    assert shown["store"] == "postgresql://ann:***@host/db"
    assert shown["lease"] == "30s"


def test_settings_survive_the_way_to_another_process(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        {
            "MAINSPRING_QUEUES": "a, b",
            "MAINSPRING_LEASE": "1.5s",
            "MAINSPRING_READY_LIMIT": "7",
            "MAINSPRING_STRICT_TASKS": "yes",
            "MAINSPRING_STORE": "sqlite:////x.db",
        },
    )

    assert config.from_texts(settings.as_texts()).as_texts() == settings.as_texts()
    assert config.from_texts(settings.as_texts()).queues == ("a", "b")
    assert config.from_texts(settings.as_texts()).strict_tasks


def test_every_setting_has_a_field_and_the_other_way_round() -> None:
    assert {*config.ABOUT, "origins"} == set(config.Settings.__dataclass_fields__)
