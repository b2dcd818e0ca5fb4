"""One connection to PostgreSQL: how it is opened, how long it may take, and what its failures mean."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from mainspring.core.errors import InvalidInput, MainspringError, StoreRefuses, StoreUnavailable, WorldError

if TYPE_CHECKING:
    import asyncpg

SECONDS_MAX = 4.5  # for a connection, and for any one statement: callers are promised an answer within five seconds
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,50}", re.ASCII)
_SCHEMES = ("postgresql", "postgres")

# What speeds a session up and bounds what it may hold up. Nothing correct depends on it: poolers may drop it all.
# Plans are made once, while the hot tables are nearly empty, and kept: a scan of the whole is cheap only then, and to
# plan a small claim anew takes longer than to carry it out.
SESSION = {
    "application_name": "mainspring",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "default_transaction_isolation": "read committed",
    "lock_timeout": "4s",
    "idle_in_transaction_session_timeout": "30s",
}

_GONE = ("08", "57P01", "57P02", "57P03", "57P05", "53300", "25P03", "XX000")
_TOO_LONG = ("57014", "55P03")
_REFUSES = ("25006", "53100", "53200", "42501", "0A000")
_AGAIN = ("40001", "40P01")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store lies: the server's URL without our own parameters, the schema, and whether a pooler is between."""

    url: str
    schema: str = "mainspring"
    pooler: bool = False
    pool_size: int = 8

    @property
    def shown(self) -> str:
        """For messages: no password."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def read_address(url: str) -> Address:
    """Takes `schema`, `pooler` and `pool_size` out of the URL; the rest is the driver's."""
    parts = urlsplit(url)
    if parts.scheme.partition("+")[0] not in _SCHEMES:
        raise InvalidInput.at(
            "/store", f"{parts.scheme}:// is no PostgreSQL URL; write postgresql://user@host/database"
        )
    ours = {"schema": "mainspring", "pooler": "", "pool_size": "8"}
    theirs = [(name, value) for name, value in parse_qsl(parts.query) if name not in ours]
    ours |= {name: value for name, value in parse_qsl(parts.query) if name in ours}
    if not _SCHEMA.fullmatch(ours["schema"]):
        raise InvalidInput.at("/store", "schema must be small letters, digits and underscores, at most 51")
    if ours["pooler"] not in ("", "session", "transaction"):
        raise InvalidInput.at("/store", "pooler must be session or transaction")
    if not ours["pool_size"].isdecimal() or not 1 <= int(ours["pool_size"]) <= 100:
        raise InvalidInput.at("/store", "pool_size must be a whole number from 1 to 100")
    plain = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(theirs), ""))
    return Address(plain, ours["schema"], ours["pooler"] == "transaction", int(ours["pool_size"]))


async def connect(address: Address) -> asyncpg.Connection:
    """A fresh connection, or StoreUnavailable."""
    driver = _driver()
    try:
        return await driver.connect(
            address.url,
            timeout=SECONDS_MAX,
            command_timeout=SECONDS_MAX,
            statement_cache_size=0 if address.pooler else 256,
            server_settings={} if address.pooler else SESSION,
        )
    except Exception as error:
        raise translate(error, address) from error


def translate(error: Exception, address: Address, *, committing: bool = False) -> Exception:
    """The error of our tree that the driver's stands for; one that is a bug of ours comes back as it is."""
    if isinstance(error, MainspringError):
        return error
    state = getattr(error, "sqlstate", None)
    if state is not None and state.startswith(_REFUSES):
        return StoreRefuses(f"{address.shown} takes no writes: {error}")
    if state is not None and state.startswith(_TOO_LONG):
        return StoreUnavailable(f"{address.shown} did not answer in time: {error}")
    if is_broken(error) or (state is not None and state.startswith(_AGAIN)):
        return StoreUnavailable(
            f"{address.shown} cannot be reached: {str(error) or type(error).__name__}", unknown_outcome=committing
        )
    if state is not None and state.startswith(("28", "3D")):
        return StoreUnavailable(f"{address.shown} does not let us in: {error}")
    return error


def is_broken(error: BaseException) -> bool:
    """Whether the connection itself failed, or the server is going away."""
    state = getattr(error, "sqlstate", None)
    if state is not None:
        return bool(state.startswith(_GONE))
    return isinstance(error, OSError | TimeoutError | EOFError | asyncio.IncompleteReadError) or _is_driver_state(error)


def may_repeat(error: BaseException) -> bool:
    """Deadlocks and serialization failures: nothing has happened, and it may be tried again."""
    return getattr(error, "sqlstate", None) in _AGAIN


def sqlstate(error: BaseException) -> str:
    return str(getattr(error, "sqlstate", None) or "")


def affected(status: str) -> int:
    """How many rows a command's status tells of."""
    return int(status.rpartition(" ")[2] or 0)


def columns_of(rows: Sequence[Sequence[object]], count: int) -> list[list[object]]:
    """Rows as one list for each column, as `unnest` takes them."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(count)]


def _is_driver_state(error: BaseException) -> bool:
    """`connection is closed` and its kin; or it was used after the server's farewell had come, and before its end."""
    driver = _driver()
    if isinstance(error, driver.InternalClientError):
        return True
    return isinstance(error, driver.InterfaceError | driver.ClientConfigurationError) and "closed" in str(error).lower()


def _driver() -> ModuleType:
    try:
        return import_module("asyncpg")
    except ImportError as error:
        raise WorldError(
            "a store on PostgreSQL needs the driver asyncpg; install it with `pip install 'mainspring[postgres]'`"
        ) from error
