"""Calls about runs, their logs and dead letters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from uuid import UUID

from mainspring.client.identity import Ids
from mainspring.client.jobs import Jobs
from mainspring.client.reading import read_id, read_limit
from mainspring.client.views import Json, log_json, run_json
from mainspring.core import fields
from mainspring.core.errors import Conflict, InvalidInput, NotFound
from mainspring.core.model import Origin, Run
from mainspring.core.states import State
from mainspring.ports.store import NewRun

LOG_LIMIT_DEFAULT = 1000
_FOLLOW_EVERY_SECONDS = 0.2
_RESOLUTIONS = {"completed": State.COMPLETED, "failed": State.FAILED, "retry": State.QUEUED}


class Runs(Jobs):
    """The group of calls about runs."""

    async def list_runs(self, **filters: object) -> Json:
        """Newest first, live and ended alike."""
        return await self.runs_where(filters, "runs")

    async def get_run(self, run_id: str) -> Json:
        return run_json(await self.run(read_id(run_id, "run")), payload=True)

    async def run(self, identity: UUID) -> Run:
        """The row."""
        found = (await self.store.runs([identity]))[0]
        if found is None:
            raise NotFound(f"there is no run {identity}")
        return found

    async def run_logs(self, run_id: str, after: int | str = 0, limit: int | str = LOG_LIMIT_DEFAULT) -> Json:
        """Lines in order; `after` is the number of the last line that is known already."""
        run = await self.run(read_id(run_id, "run"))
        wanted = read_limit(limit)
        found = await self.store.logs(run.id, after=_line_number(after), limit=wanted + 1)
        more = len(found) > wanted
        found = found[:wanted]
        return {
            "items": [log_json(number, line) for number, line in found],
            "next": str(found[-1][0]) if more else None,
        }

    async def follow_logs(self, run_id: str, after: int | str = 0) -> AsyncIterator[Json]:
        """Lines as they come, until the run has ended and all of them were told."""
        identity = (await self.run(read_id(run_id, "run"))).id
        last = _line_number(after)
        while True:
            ended = (await self.run(identity)).state.ended
            found = await self.store.logs(identity, after=last, limit=LOG_LIMIT_DEFAULT)
            for number, line in found:
                last = number
                yield log_json(number, line)
            if ended and len(found) < LOG_LIMIT_DEFAULT:
                return
            if not found:
                await asyncio.sleep(_FOLLOW_EVERY_SECONDS)

    async def cancel_run(self, run_id: str) -> Json:
        """Ends what waits; asks what runs to stop."""
        run = await self.run(read_id(run_id, "run"))
        if run.state is State.CANCELLED or run.cancel_requested_at is not None:
            return run_json(run, payload=True)
        if run.state.ended:
            raise Conflict(f"run {run.id} is {run.state.word}: there is nothing left to cancel")
        outcome = (await self.store.cancel([run.id], by=self.settings.created_by))[0]
        after = await self.run(run.id)
        if not (outcome.ended or outcome.asked) and after.state is not State.CANCELLED:
            raise Conflict(f"run {run.id} is {after.state.word}: there is nothing left to cancel")
        self.changed(run.id, "cancel")
        return run_json(after, payload=True)

    async def retry_run(self, run_id: str, body: Mapping[str, object] | None = None, *, ids: Ids | None = None) -> Json:
        """A retrying run goes on now; of an ended one a new run is made, linked to it."""
        timeout = fields.fields_of(
            body or {}, "", {"timeout": fields.optional(fields.positive_span)}, '{"timeout": "10m"}'
        )
        run = await self.run(read_id(run_id, "run"))
        if run.state is State.RETRYING:
            if timeout:
                raise Conflict(f"run {run.id} is retrying: its timeout is that of its job; cancel it, then retry it")
            if not await self.store.retry_now(run.id):
                run = await self.run(run.id)
                raise Conflict(f"run {run.id} is {run.state.word} by now")
            return run_json(await self.run(run.id), payload=True)
        if not run.state.ended:
            raise Conflict(f"run {run.id} is {run.state.word}: only what has ended or is retrying can be retried")
        document = json.dumps({**json.loads(run.document or "{}"), **timeout}, sort_keys=True) if timeout else None
        return await self._again(run, Origin.RETRY, ids, document=document, redeem=run.state is State.FAILED)

    async def resolve_run(self, run_id: str, body: Mapping[str, object]) -> Json:
        """Says what became of an unknown run."""
        known = {"as": fields.choice(*_RESOLUTIONS), "note": fields.optional(fields.description)}
        given = fields.fields_of(body, "", known, '{"as": "completed"}')
        if "as" not in given:
            raise InvalidInput.at("/as", f"is missing; say {', '.join(_RESOLUTIONS)}")
        run = await self.run(read_id(run_id, "run"))
        note = given.get("note")
        state = _RESOLUTIONS[str(given["as"])]
        resolved = await self.store.resolve(
            run.id, state, note=None if note is None else str(note), by=self.settings.created_by
        )
        after = await self.run(run.id)
        if not resolved:
            raise Conflict(f"run {run.id} is {after.state.word}: only an unknown run can be resolved")
        self.changed(run.id, "resolve")
        return run_json(after, payload=True)

    async def list_dead_letters(self, **filters: object) -> Json:
        """Failed runs that nobody replayed or discarded, newest first."""
        return await self.runs_where(filters, "dead")

    async def replay_dead_letter(
        self, run_id: str, body: Mapping[str, object] | None = None, *, ids: Ids | None = None
    ) -> Json:
        """A new run of the failed one, with another payload if one is given."""
        given = fields.fields_of(body or {}, "", {"payload": fields.encode_payload}, '{"payload": {"name": "value"}}')
        run = await self.run(read_id(run_id, "dead letter"))
        if run.state is not State.FAILED:
            raise Conflict(f"run {run.id} is {run.state.word}: only a failed run is a dead letter")
        payload = given.get("payload")
        assert payload is None or isinstance(payload, bytes)
        if payload is not None:
            document = {"task": run.lane.task, "payload": (body or {})["payload"]}
            problems = (await self.requests([document]))[0].problems
            if problems:
                raise InvalidInput(problems)
        return await self._again(run, Origin.REPLAY, ids, payload=payload, redeem=True, must_redeem=True)

    async def discard_dead_letter(self, run_id: str) -> Json:
        """Takes the failed run out of the dead letters."""
        run = await self.run(read_id(run_id, "dead letter"))
        if run.state is not State.FAILED:
            raise Conflict(f"run {run.id} is {run.state.word}: only a failed run is a dead letter")
        if (await self.store.discard_dead_letters([run.id], by=self.settings.created_by))[0]:
            self.changed(run.id, "discard")
        return run_json(run, payload=True)

    async def _again(
        self,
        run: Run,
        origin: Origin,
        ids: Ids | None,
        *,
        document: str | None = None,
        payload: bytes | None = None,
        redeem: bool = False,
        must_redeem: bool = False,
    ) -> Json:
        now = await self.now()
        new = NewRun(
            (ids or self.ids)(now, 1)[0],
            run.job_id,
            origin,
            replaces=run.id,
            payload=payload,
            document=document,
            created_by=self.settings.created_by,
        )
        try:
            made = await self.add_run(new, again=ids is not None, redeem=redeem)
        except Conflict:
            if not redeem or must_redeem:
                raise
            made = await self.add_run(new, again=ids is not None)
        self.changed(run.id, origin.value)
        return run_json(made, payload=True)


def _line_number(value: int | str) -> int:
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise InvalidInput.at("/cursor", "is no cursor of this list; take `next` of an earlier answer")
    return int(text)
