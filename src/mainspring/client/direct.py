"""The one door to a store: every face and every program submits, changes and reads through it."""

from __future__ import annotations

from mainspring.client.base import ClientSettings
from mainspring.client.skipping import Skipping

__all__ = ["ClientSettings", "Direct"]


class Direct(Skipping):
    """The calls of the API over a store; arguments and answers are its JSON objects, errors those of `core.errors`.

    `create_job` … `stats` are the same as those of the HTTP clients. `requests`, `submit` and `submit_prepared` are for
    programs that encode their arguments themselves; `once` is for faces that take Idempotency-Keys.
    """
