"""What a scheduler does, at virtual instants: fires what is due, makes retries ready, ends what expired."""

from __future__ import annotations

from mainspring.client.direct import Direct
from mainspring.core.firing import plan_firing
from mainspring.core.model import Instant
from mainspring.core.times import read_duration, utc_text
from mainspring.testing.clock import VirtualClock


class VirtualTime:
    """Moves the clock to the next instant at which something is to be done."""

    def __init__(self, client: Direct, clock: VirtualClock) -> None:
        self._client = client
        self._clock = clock

    @property
    def text(self) -> str:
        return utc_text(self._clock.now)

    def after(self, span: float | str) -> Instant:
        return self._clock.now + read_duration(span, "/span")

    async def settle(self) -> None:
        """Does what is due by now."""
        store, now = self._client.store, self._clock.now
        while jobs := await store.due_jobs(None, until=now):
            planned = [plan_firing(job, now, calendars=await self._client.calendars_of(job)) for job in jobs]
            firings = [firing for firing in planned if firing is not None]
            if not any(fired.applied for fired in await store.fire(firings)):
                break
        await store.promote()
        await store.expire()

    async def move_to_next(self, target: Instant) -> bool:
        """To the next such instant up to the target; False, and the clock at the target, where there is none."""
        now = self._clock.now
        due = await self._client.store.due_jobs(None, until=target, limit=1)
        instants = [job.scheduled_at for job in due if job.scheduled_at is not None]
        wake = await self._client.store.next_wake()
        if wake is not None:
            instants.append(wake)
        following = min((each for each in instants if each > now), default=target)
        self._clock.move_to(min(following, target))
        return following < target
