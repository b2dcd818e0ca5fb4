"""The socket that the API listens on."""

from __future__ import annotations

import ipaddress
import socket

from mainspring.config import Settings
from mainspring.core.errors import Conflict, InvalidInput

BACKLOG = 2048


def listen_on(settings: Settings) -> socket.socket:
    """Bound before anything else starts, so that a port in use is said at once. Loopback only: there are no keys yet."""
    if not _is_loopback(settings.host):
        raise InvalidInput.at(
            "host",
            f"{settings.host!r} is not loopback, and this version has no keys: anybody could submit jobs; "
            "use 127.0.0.1 and put a proxy that knows your users before it",
        )
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise Conflict(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; --port 0 picks a free port"
        ) from None
    listener.listen(BACKLOG)
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
