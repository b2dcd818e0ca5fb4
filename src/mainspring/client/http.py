"""Clients that speak HTTP: the same calls and errors as over a store directly.

Every POST carries an Idempotency-Key, so that sending it again after a lost reply does nothing twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from mainspring.client.answers import error_of
from mainspring.client.calls import Calls, Sent, logs_path
from mainspring.client.views import Json
from mainspring.core.errors import StoreUnavailable
from mainspring.ports.clock import Clock, SystemClock

if TYPE_CHECKING:
    import httpx2

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 65.0
_BACKOFF_FIRST_SECONDS = 0.1
_BACKOFF_MAX_SECONDS = 2.0


class _Tries:
    """How often and how long one request is tried."""

    def __init__(self, sent: Sent, clock: Clock, patience: float) -> None:
        self._clock = clock
        self._give_up_at = clock.monotonic() + patience
        self._backoff = _BACKOFF_FIRST_SECONDS
        self.headers = dict(sent.headers)
        if sent.method == "POST":
            self.headers.setdefault("Idempotency-Key", clock.random_bytes(16).hex())
        self._repeatable = sent.repeatable

    def wait_after(self, error: Exception, *, reached: bool) -> float:
        """Seconds until the next try; raises the error where another try is of no use or not safe."""
        wait = self._clock.random() * self._backoff
        self._backoff = min(_BACKOFF_MAX_SECONDS, self._backoff * 2)
        if (reached and not self._repeatable) or self._clock.monotonic() + wait >= self._give_up_at:
            raise error
        return wait


class AsyncClient(Calls[Coroutine[object, None, Json]]):
    """The client for code with an event loop: `async with AsyncClient("http://127.0.0.1:8321") as client: …`."""

    def __init__(
        self,
        server: str,
        key: str | None = None,
        *,
        patience: float = 10.0,
        clock: Clock | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        import httpx2

        self._clock = clock or SystemClock()
        self._patience = patience
        self._http = httpx2.AsyncClient(
            base_url=_base(server),
            headers=_headers(key),
            timeout=httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
            transport=transport,
            verify=_is_encrypted(server),
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def follow_logs(self, run_id: str, after: int | str = 0) -> AsyncIterator[Json]:
        """Lines as they come, until the run has ended."""
        import httpx2

        query = {"follow": "true", "cursor": str(after)}
        try:
            async with self._http.stream("GET", logs_path(run_id), params=query, timeout=None) as response:
                if response.status_code != 200:
                    raise error_of(response.status_code, response.headers, await response.aread())
                async for line in response.aiter_lines():
                    if line.startswith("data:"):
                        yield msgspec.json.decode(line.removeprefix("data:"), type=Json)
        except httpx2.HTTPError as error:
            raise _unreachable(self._http.base_url, error) from error

    async def _call(self, sent: Sent) -> Json:
        tries = _Tries(sent, self._clock, self._patience)
        while True:
            try:
                return await self._send(sent, tries)
            except _Again as again:
                wait = tries.wait_after(again.error, reached=again.reached)
            await asyncio.sleep(wait)

    async def _send(self, sent: Sent, tries: _Tries) -> Json:
        import httpx2

        try:
            response = await self._http.request(
                sent.method, sent.path, params=_query(sent), content=_content(sent), headers=tries.headers
            )
        except httpx2.HTTPError as error:
            raise _Again(_unreachable(self._http.base_url, error), reached=_reached(error)) from error
        return _read(response)


class Client(Calls[Json]):
    """The client for code without an event loop: `with Client("http://127.0.0.1:8321") as client: …`."""

    def __init__(
        self,
        server: str,
        key: str | None = None,
        *,
        patience: float = 10.0,
        clock: Clock | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        import httpx2

        self._clock = clock or SystemClock()
        self._patience = patience
        self._http = httpx2.Client(
            base_url=_base(server),
            headers=_headers(key),
            timeout=httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
            transport=transport,
            verify=_is_encrypted(server),
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def follow_logs(self, run_id: str, after: int | str = 0) -> Iterator[Json]:
        """Lines as they come, until the run has ended."""
        import httpx2

        query = {"follow": "true", "cursor": str(after)}
        try:
            with self._http.stream("GET", logs_path(run_id), params=query, timeout=None) as response:
                if response.status_code != 200:
                    raise error_of(response.status_code, response.headers, response.read())
                for line in response.iter_lines():
                    if line.startswith("data:"):
                        yield msgspec.json.decode(line.removeprefix("data:"), type=Json)
        except httpx2.HTTPError as error:
            raise _unreachable(self._http.base_url, error) from error

    def _call(self, sent: Sent) -> Json:
        tries = _Tries(sent, self._clock, self._patience)
        while True:
            try:
                return self._send(sent, tries)
            except _Again as again:
                wait = tries.wait_after(again.error, reached=again.reached)
            time.sleep(wait)

    def _send(self, sent: Sent, tries: _Tries) -> Json:
        import httpx2

        try:
            response = self._http.request(
                sent.method, sent.path, params=_query(sent), content=_content(sent), headers=tries.headers
            )
        except httpx2.HTTPError as error:
            raise _Again(_unreachable(self._http.base_url, error), reached=_reached(error)) from error
        return _read(response)


class _Again(Exception):
    """A try that failed in a way that may pass."""

    def __init__(self, error: Exception, *, reached: bool) -> None:
        self.error = error
        self.reached = reached
        super().__init__(str(error))


def _read(response: httpx2.Response) -> Json:
    """The answer's object, or the error that it tells of."""
    if response.is_success:
        return msgspec.json.decode(response.content, type=Json)
    error = error_of(response.status_code, response.headers, response.content)
    in_flight = response.status_code == 409 and "retry-after" in response.headers
    if isinstance(error, StoreUnavailable) or in_flight:
        raise _Again(error, reached=True)
    raise error


def _reached(error: httpx2.HTTPError) -> bool:
    """Whether the server may have acted on the request."""
    import httpx2

    return not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)


def _unreachable(address: object, error: Exception) -> StoreUnavailable:
    why = str(error) or type(error).__name__
    return StoreUnavailable(f"{address} does not answer: {why}", unknown_outcome=True)


def _base(server: str) -> str:
    address = server if "://" in server else f"http://{server}"
    return address.rstrip("/")


def _is_encrypted(server: str) -> bool:
    """Without encryption there is nothing to verify, and reading the certificates of the world takes 20 ms."""
    return not _base(server).startswith("http://")


def _headers(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _query(sent: Sent) -> dict[str, str | list[str]] | None:
    found: dict[str, str | list[str]] = {}
    for name, value in sent.query.items():
        if isinstance(value, list | tuple):
            found[name] = [str(each) for each in value]
        elif value is not None:
            found[name] = str(value)
    return found or None


def _content(sent: Sent) -> bytes | None:
    return None if sent.body is None else msgspec.json.encode(sent.body)
