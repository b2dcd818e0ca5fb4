"""Calls about calendars that schedules share by name."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mainspring.client.places import Places
from mainspring.client.reading import page_of
from mainspring.client.views import Json, etag_of
from mainspring.core import fields
from mainspring.core.calendar_read import FIELDS, read_calendar
from mainspring.core.errors import InvalidInput, NotFound, StaleVersion
from mainspring.core.fields import encode_json
from mainspring.core.times import utc_text
from mainspring.ports.replanning import replan_users
from mainspring.ports.timetables import StoredCalendar

_SHOWN_ONLY = ("name", "version", "updated_at")
_EMPTY: Json = {"dates": [], "days_off": [], "icalendar": None}


class Calendars(Places):
    """The group of calls about calendars."""

    async def list_calendars(self, **paging: object) -> Json:
        rows = await self.store.calendars(namespace=self.settings.namespace)
        return page_of([calendar_json(row) for row in rows], "name", paging, "calendars")

    async def get_calendar(self, name: str) -> Json:
        return calendar_json(await self._calendar(name))

    async def put_calendar(self, name: str, document: Mapping[str, object], *, if_match: str | None = None) -> Json:
        """Creates or replaces it, and plans anew what is to come of the jobs that use it."""
        return (await self.set_calendar(name, document, if_match=if_match))[0]

    async def set_calendar(self, name: str, document: object, *, if_match: str | None = None) -> tuple[Json, bool]:
        """The calendar, and whether it is new."""
        name = fields.identifier(name, "/name")
        given = fields.members(document, "", '{"dates": ["2026-12-25"], "days_off": ["sat", "sun"]}')
        if given.get("name", name) != name:
            raise InvalidInput.at("/name", f"differs from the name in the address, {name!r}; leave it out")
        read_calendar(name, {field: value for field, value in given.items() if field not in _SHOWN_ONLY})
        kept = {field: given[field] for field in FIELDS if given.get(field)}
        text = encode_json(kept, "").decode()
        await self.book.refresh()
        before = self.book.of(self.settings.namespace)
        expected = await self._expected(name, if_match)
        row = await self.store.put_calendar(name, text, expected=expected, namespace=self.settings.namespace)
        await self.book.refresh()
        if name in before:
            after = self.book.of(self.settings.namespace)
            await replan_users(self.store, name, self.settings.namespace, before, after, self.settings.misfire)
        return calendar_json(row), row.version == 1

    async def delete_calendar(self, name: str, *, if_match: str | None = None) -> Json:
        """Removes one that no job uses; answers it as it was."""
        row = await self._calendar(name)
        expected = await self._expected(name, if_match)
        await self.store.delete_calendar(name, expected=expected, namespace=self.settings.namespace)
        return calendar_json(row)

    async def _calendar(self, name: str) -> StoredCalendar:
        found = await self.store.calendars([name], self.settings.namespace)
        if not found:
            raise NotFound(f"there is no calendar {name[:64]!r}")
        return found[0]

    async def _expected(self, name: str, if_match: str | None) -> int | None:
        """The version that the caller saw, if it is still the one; the store looks again when it writes."""
        if if_match is None:
            return None
        found = await self.store.calendars([name], self.settings.namespace)
        version = found[0].version if found else 0
        wanted = [each.strip().removeprefix("W/") for each in if_match.split(",")]
        if version and ("*" in wanted or etag_of(version) in wanted or str(version) in wanted):
            return version
        held = f"has version {version}, not {if_match}" if version else "does not exist"
        raise StaleVersion(f"calendar {name!r} {held}; read it again")


def calendar_json(row: StoredCalendar) -> Json:
    given: Json = json.loads(row.document)
    return {"name": row.name, **_EMPTY, **given, "version": row.version, "updated_at": utc_text(row.updated_at)}
