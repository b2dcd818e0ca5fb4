"""Settings, each with where it came from: flag > argument in code > environment > file > default.

A file is `mainspring.toml`, or `[tool.mainspring]` in `pyproject.toml`, in the working folder or the nearest folder
above it that has one. A name that is no setting is an error, wherever it stands: a typing error that is ignored
costs an evening. Durations are read by `core.times`; any setting can come from a file named by `MAINSPRING_…_FILE`.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mainspring.core.errors import InvalidInput, Problem
from mainspring.core.model import SECOND, Duration
from mainspring.core.times import duration_text, read_duration

DEFAULT_STORE = "sqlite:///mainspring.db"
ROLES = ("api", "scheduler", "worker")
BEATS_IN_LEASE_MIN = 3

ABOUT: dict[str, str] = {
    "store": "Where everything is remembered: sqlite:///file.db or postgresql://user@host/database",
    "queue": "The ready queue; empty: the store itself",
    "coordination": "Membership and shard ownership; empty: the store itself",
    "server": "The address of a server, for client commands",
    "key": "The key that client commands show to the server",
    "app": "MODULE:APP, the application whose tasks are served",
    "host": "The address the API listens on; loopback only, since there are no keys yet",
    "port": "The port the API listens on; 0: a free one",
    "roles": "What `up` runs here: api, scheduler, worker",
    "concurrency": "How many runs one worker process carries out at once",
    "processes": "How many worker processes run here",
    "queues": "The queues that workers here serve; empty: all",
    "lease": "How long the silence of a host is borne before its runs start elsewhere",
    "heartbeat": "How often a host says that it lives; a tenth of the lease unless set",
    "drain": "How long runs may go on once a stop was asked for",
    "misfire": "The policy for misfired occurrences where a job names none: skip, once or all",
    "ready_limit": "How much may be queued or held in one queue before submits are refused; empty: no bound",
    "strict_tasks": "Whether the API refuses a job whose task no worker has registered, instead of holding it",
    "sqlite_journal": "The journal of a SQLite store: auto, wal or delete (rollback)",
    "history_days": "How many days finished runs are kept",
    "log_days": "How many days the logs of runs are kept",
    "log_level": "The least level that is written to standard error: debug, info, warning or error",
    "log_format": "How log lines look: text or json",
}

# Named in the documentation for parts that come with later versions; one file may serve both versions.
LATER = frozenset({"http_allow", "webhook_secret", "commands", "breaker"})

_DURATIONS = frozenset({"lease", "heartbeat", "drain"})
_PREFIX = "MAINSPRING_"
_TEST_PREFIX = "MAINSPRING_TEST_"
_FILE_SUFFIX = "_FILE"
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_CREDENTIALS = re.compile(r"(://[^:/@]*:)[^@/]*@")


@dataclass(frozen=True, slots=True)
class Settings:
    """What this process was told; `origins` says for each setting where its value came from."""

    store: str = DEFAULT_STORE
    queue: str = ""
    coordination: str = ""
    server: str = ""
    key: str = ""
    app: str = ""
    host: str = "127.0.0.1"
    port: int = 8321
    roles: tuple[str, ...] = ROLES
    concurrency: int = 10
    processes: int = 1
    queues: tuple[str, ...] = ()
    lease: Duration = 30 * SECOND
    heartbeat: Duration = 3 * SECOND
    drain: Duration = 30 * SECOND
    misfire: str = "once"
    ready_limit: int | None = None
    strict_tasks: bool = False
    sqlite_journal: str = "auto"
    history_days: int = 30
    log_days: int = 7
    log_level: str = "info"
    log_format: str = "text"
    origins: Mapping[str, str] = field(default_factory=dict)

    def shown(self) -> dict[str, object]:
        """The values as people may see them: durations as text, secrets masked."""
        return {name: _shown(name, getattr(self, name)) for name in ABOUT}

    def as_texts(self) -> dict[str, str]:
        """Every setting as the text that reads back to it, for handing them to another process."""
        return {name: _text_of(name, getattr(self, name)) for name in ABOUT}

    def is_default(self, name: str) -> bool:
        return self.origins.get(name, "default") == "default"


def load(
    flags: Mapping[str, object] | None = None,
    arguments: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """The settings that hold here; raises InvalidInput with everything that is wrong."""
    sources = _Sources()
    sources.add_file(folder or Path.cwd())
    sources.add_environment(os.environ if environment is None else environment)
    sources.add(arguments or {}, lambda name: f"argument {name}=")
    sources.add(flags or {}, lambda name: f"flag --{name.replace('_', '-')}")
    return _read(sources)


def from_texts(values: Mapping[str, str]) -> Settings:
    """What `as_texts` wrote in another process; nothing else is looked at."""
    sources = _Sources()
    sources.add(values, lambda _: "supervisor")
    return _read(sources)


def _read(sources: _Sources) -> Settings:
    lease = sources.duration("lease", 30 * SECOND)
    heartbeat = sources.duration("heartbeat", lease // 10)
    if lease < BEATS_IN_LEASE_MIN * heartbeat or not heartbeat:
        sources.refuse(
            "lease",
            f"is {duration_text(lease)} with a beat of {duration_text(heartbeat)}: a lease holds at least "
            f"{BEATS_IN_LEASE_MIN} beats; raise the lease or shorten the heartbeat",
        )
    settings = Settings(
        store=sources.text("store", DEFAULT_STORE),
        queue=sources.text("queue", ""),
        coordination=sources.text("coordination", ""),
        server=sources.text("server", ""),
        key=sources.text("key", ""),
        app=sources.text("app", ""),
        host=sources.text("host", "127.0.0.1"),
        port=sources.integer("port", 8321, least=0, most=65535),
        roles=sources.names("roles", ROLES, allowed=ROLES),
        concurrency=sources.integer("concurrency", 10, least=1, most=100_000),
        processes=sources.integer("processes", 1, least=1, most=1024),
        queues=sources.names("queues", ()),
        lease=lease,
        heartbeat=heartbeat,
        drain=sources.duration("drain", 30 * SECOND),
        misfire=sources.choice("misfire", "once", ("skip", "once", "all")),
        ready_limit=sources.integer("ready_limit", 0, least=1) or None,
        strict_tasks=sources.truth("strict_tasks", default=False),
        sqlite_journal=sources.choice("sqlite_journal", "auto", ("auto", "wal", "delete")),
        history_days=sources.integer("history_days", 30, least=1, most=36_500),
        log_days=sources.integer("log_days", 7, least=1, most=36_500),
        log_level=sources.choice("log_level", "info", ("debug", "info", "warning", "error")),
        log_format=sources.choice("log_format", "text", ("text", "json")),
        origins={name: sources.origins.get(name, "default") for name in ABOUT},
    )
    if sources.problems:
        raise InvalidInput(sources.problems)
    return settings


class _Sources:
    """Values as they were given, the strongest last; readers that note what is wrong and go on."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.origins: dict[str, str] = {}
        self.spelled: dict[str, str] = {}
        self.problems: list[Problem] = []

    def add(self, values: Mapping[str, object], origin: Callable[[str], str]) -> None:
        for name, value in values.items():
            if value is None or value in ("", (), []):
                continue
            self._take(name, value, origin(name), spelled=origin(name))

    def add_environment(self, environment: Mapping[str, str]) -> None:
        for variable in sorted(environment):
            if not variable.startswith(_PREFIX) or variable.startswith(_TEST_PREFIX) or not environment[variable]:
                continue
            name = variable.removeprefix(_PREFIX).lower()
            self._take_or_file(name, environment[variable], f"environment {variable}", variable)

    def add_file(self, folder: Path) -> None:
        found = _settings_file(folder)
        if found is None:
            return
        path, table = found
        for key, value in table.items():
            self._take_or_file(key.replace("-", "_"), value, str(path), f"{path}: {key}")

    def _take_or_file(self, name: str, value: object, origin: str, spelled: str) -> None:
        target = name.removesuffix(_FILE_SUFFIX.lower())
        if target == name or target not in ABOUT:
            self._take(name, value, origin, spelled)
            return
        try:
            content = Path(str(value)).read_text(encoding="utf-8").strip()
        except OSError as error:
            self.problems.append(Problem(spelled, f"names a file that cannot be read: {error}"))
            return
        self._take(target, content, origin, spelled)

    def _take(self, name: str, value: object, origin: str, spelled: str) -> None:
        if name in LATER:
            return
        if name not in ABOUT:
            self.problems.append(Problem(spelled, f"is no setting{_nearest(name, spelled)}"))
            return
        self.values[name] = value
        self.origins[name] = origin
        self.spelled[name] = spelled

    def refuse(self, name: str, detail: str) -> None:
        self.problems.append(Problem(self.spelled.get(name, name), detail))

    def text(self, name: str, default: str) -> str:
        value = self.values.get(name, default)
        if not isinstance(value, str):
            self.refuse(name, f"must be text, not {value!r}")
            return default
        return value

    def choice(self, name: str, default: str, allowed: Sequence[str]) -> str:
        value = self.text(name, default)
        if value not in allowed:
            self.refuse(name, f"is {value!r}; it can be {', '.join(allowed)}")
        return value

    def integer(self, name: str, default: int, *, least: int, most: int = 2**53) -> int:
        value = self.values.get(name, None)
        if value is None:
            return default
        number = _whole_number(value)
        if number is None or not least <= number <= most:
            self.refuse(name, f"is {value!r}; it must be a whole number from {least} to {most}")
            return default
        return number

    def truth(self, name: str, *, default: bool) -> bool:
        value = self.values.get(name, default)
        known = _TRUTHS.get(str(value).strip().lower())
        if known is None:
            self.refuse(name, f"is {value!r}; it can be true or false")
            return default
        return known

    def duration(self, name: str, default: Duration) -> Duration:
        if name not in self.values:
            return default
        try:
            return read_duration(self.values[name], name)
        except InvalidInput as error:
            self.refuse(name, error.problems[0].detail)
            return default

    def names(self, name: str, default: tuple[str, ...], allowed: Sequence[str] = ()) -> tuple[str, ...]:
        value = self.values.get(name, default)
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        if not isinstance(value, list | tuple) or not all(isinstance(part, str) and part for part in value):
            self.refuse(name, f"must be names separated by commas, not {value!r}")
            return default
        strange = [part for part in value if allowed and part not in allowed]
        if strange:
            self.refuse(name, f"names {', '.join(strange)}; it can hold {', '.join(allowed)}")
        return tuple(dict.fromkeys(value))


def _settings_file(folder: Path) -> tuple[Path, dict[str, object]] | None:
    """The nearest file that has settings, read."""
    for place in (folder, *folder.parents):
        own = place / "mainspring.toml"
        if own.is_file():
            return own, _toml(own)
        project = place / "pyproject.toml"
        # Reading TOML takes longer than the whole rest, and most such files do not speak of us.
        if project.is_file() and b"tool.mainspring" in project.read_bytes():
            tool = _toml(project).get("tool")
            table = tool.get("mainspring") if isinstance(tool, dict) else None
            if isinstance(table, dict):
                return project, table
    return None


def _toml(path: Path) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput.at(str(path), f"is no valid TOML: {error}") from None


def _nearest(name: str, spelled: str) -> str:
    close = difflib.get_close_matches(name.removesuffix("_file"), [*ABOUT, *LATER], n=1)
    if not close:
        return "; `mainspring config show` lists them"
    return f"; did you mean {_PREFIX + close[0].upper() if spelled.startswith(_PREFIX) else close[0]}?"


def _whole_number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    text = str(value).strip()
    return int(text) if re.fullmatch(r"-?\d{1,18}", text, re.ASCII) else None


def _shown(name: str, value: object) -> object:
    if name == "key":
        return "***" if value else ""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, str) or name in _DURATIONS:
        return _CREDENTIALS.sub(r"\1***@", _text_of(name, value))
    return value


def _text_of(name: str, value: object) -> str:
    if value is None:
        return ""
    if name in _DURATIONS and isinstance(value, int):
        return duration_text(value)
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)
    return value if isinstance(value, str) else json.dumps(value)
