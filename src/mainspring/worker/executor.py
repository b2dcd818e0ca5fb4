"""Carries out runs: long-lived slots drain one queue and call handlers inline, so that a run costs no task and no timer.

One timer stands for all deadlines. A handler that must stop is asked first (async: cancelled; thread: `run.cancelled`
is set) and after its `cancel_grace` (a thread past its timeout: a second of it) abandoned: its run ends without it, what
it does later is dropped. An abandoned coroutine is replaced by a new slot; an abandoned thread holds its slot until it ends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import copy_context
from functools import reduce
from typing import Any
from uuid import UUID

from mainspring.core.model import DEATHS_MAX, SECOND, Claimed, Ending, Instant
from mainspring.core.states import Outcome, State
from mainspring.observe import events
from mainspring.tasks.context import CURRENT, RunContext, RunSink
from mainspring.tasks.registry import Middleware, Registry
from mainspring.worker import outcome
from mainspring.worker.outcome import Cause, Finished
from mainspring.worker.slots import NEVER, Board, Plan, Slot, plan_of
from mainspring.worker.surroundings import Surroundings

SLICE = 0.001  # seconds of inline handlers before others on the loop get a turn
SUSPICIOUS_DEATHS = DEATHS_MAX - 1
_HORIZON = 0.01  # seconds of work that may be prefetched
_FEW_SLOTS = 3
_FLOOD_RUNS = 30
_BREAK = 0.5
_BOARD_BEAT = 0.25
_SOONEST = 0.001


class Executor:
    """`deliver` takes what has ended; `want_more` is called when there is room for more runs."""

    def __init__(
        self,
        around: Surroundings,
        registry: Registry,
        *,
        sink: RunSink,
        deliver: Callable[[Finished], None],
        want_more: Callable[[], None],
    ) -> None:
        self.queue: deque[Claimed] = deque()
        self.slots: list[Slot] = [Slot(number) for number in range(around.settings.slots)]
        self.strays: set[Slot] = set()  # abandoned coroutines that have not ended
        self.board: Board | None = None
        self.on_change: Callable[[], None] = _ignore
        self.on_abandoned: Callable[[], None] = _ignore
        self._registry = registry
        self._surroundings = around
        self._monotonic = around.clock.monotonic
        self._random = around.clock.random
        self._store_time = around.store_time
        self._sink = sink
        self._bus = around.bus
        self._deliver = deliver
        self._want_more = want_more
        self._prefetch_max = around.settings.prefetch
        self._lease = around.settings.lease / SECOND
        self._plans: dict[tuple[str, str | None], Plan] = {}
        self._around = _chain(registry.middleware)
        self._idle: list[Slot] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._board_timer: asyncio.TimerHandle | None = None
        self._context = copy_context()
        self._armed_for = NEVER
        self._low = 0
        self._mean: float | None = None
        self._taken_at = 0.0
        self._in_a_row = 0
        self._closing = False

    # --- what the feed asks ----------------------------------------------------------------------------------

    def room(self, now: float) -> int:
        """How many more runs are worth claiming: the free slots, and ahead what slots finish within a moment."""
        free = len(self._idle)
        ahead = self._ahead(now, free)
        self._low = ahead // 2
        waiting = len(self.queue)
        if free == 0 and waiting > self._low:
            return 0
        return max(0, free + ahead - waiting)

    def accept(self, runs: Sequence[Claimed]) -> None:
        """Starts or queues them; a slot begins with them in this turn of the event loop."""
        self.queue.extend(runs)
        now = self._monotonic()
        self._in_a_row = len(runs) + (self._in_a_row if now - self._taken_at < _BREAK else 0)
        self._taken_at = now
        for _ in range(min(len(runs), len(self._idle))):
            self._rouse(self._idle.pop())

    def stuck(self, now: float, after: float) -> bool:
        """Whether runs wait here behind handlers that take long."""
        return bool(self.queue) and not self._idle and now - self._taken_at >= after

    def withdraw(self) -> list[Claimed]:
        """Takes back all that has not started; the next claims are cautious."""
        runs = list(self.queue)
        self.queue.clear()
        self._mean = max(self._mean or 0.0, _HORIZON)
        return runs

    def holds_suspect(self) -> bool:
        """Whether a run is held whose worker's process has died under it twice."""
        return any(claimed.deaths >= SUSPICIOUS_DEATHS for claimed in self._held())

    def held(self) -> Iterator[tuple[UUID, int]]:
        """Every (run, fence) that waits or is being carried out here."""
        for claimed in self._held():
            yield claimed.id, claimed.fence

    def current(self, task: asyncio.Task[Any] | None) -> tuple[UUID, int] | None:
        """Whose handler this task is, if it is one's; looked up beside a loop that may be blocked."""
        for slot in [*self.slots, *self.strays]:
            claimed = slot.claimed
            if task is not None and slot.task is task and claimed is not None:
                return claimed.id, claimed.fence
        return None

    # --- what shutdown and lease ask ---------------------------------------------------------------------------

    @property
    def active(self) -> int:
        """Handlers under way whose runs have not been ended without them."""
        return sum(1 for slot in self.slots if slot.busy and not slot.abandoned)

    @property
    def stoppable(self) -> int:
        """Those of the active ones that a worker can cancel."""
        return sum(1 for slot in self.slots if slot.plan is not None and not slot.abandoned and not slot.plan.threaded)

    def longest_grace(self) -> float:
        return max((slot.plan.grace for slot in self.slots if slot.plan is not None), default=0.0)

    @property
    def lost_threads(self) -> int:
        return sum(1 for slot in self.slots if slot.abandoned)

    @property
    def unstoppable(self) -> bool:
        """Whether something still runs here that only the end of the process can stop."""
        return bool(self.strays) or any(slot.busy for slot in self.slots)

    @property
    def unreported(self) -> bool:
        """Whether a handler still runs whose run has not been ended: somebody must tell of it once this process is gone."""
        return any(
            slot.busy
            and not (slot.abandoned and slot.cause in _TOLD_WHEN_ABANDONED)
            and slot.cause is not Cause.REVOKED
            for slot in [*self.slots, *self.strays]
        )

    def ask_all(self, cause: Cause) -> None:
        for slot in list(self.slots):
            if slot.busy:
                self.ask(slot, cause)

    def ask(self, slot: Slot, cause: Cause) -> None:
        """Asks a handler to stop. The first cause stays, unless the run itself is gone."""
        if slot.abandoned or slot.plan is None or slot.run is None:
            return
        if cause is Cause.RELEASE and slot.plan.threaded:
            return  # it may still come to its own end; if it does not, the end of the process is its end
        if slot.cause is not None:
            if cause in (Cause.LOST, Cause.REVOKED):
                slot.cause = cause
            return
        slot.cause = cause
        slot.run.cancelled = True
        grace = slot.plan.grace
        if cause is Cause.TIMEOUT and slot.plan.threaded:
            grace = min(grace, _THREAD_GRACE)
        slot.deadline = self._monotonic() + grace
        self._arm(slot.deadline)
        if not slot.plan.threaded and slot.task is not None and slot.task is not asyncio.current_task():
            slot.task.cancel()

    def cancel(self, run_id: UUID, fence: int) -> bool:
        """A cancel was requested: True where the run is held here."""
        for slot in self.slots:
            if slot.claimed is not None and slot.claimed.id == run_id and slot.claimed.fence == fence:
                self.ask(slot, Cause.CANCEL)
                return True
        for claimed in self.queue:
            if claimed.id == run_id and claimed.fence == fence:
                self.queue.remove(claimed)
                ending = outcome.cancelled_before_start(claimed)
                self._deliver(Finished(claimed, ending, 0.0, self._store_time.now()))
                return True
        return False

    def nearest_loss(self, acknowledged_at: float) -> float:
        """When the first run under way outlives what the last acknowledged renewal allows."""
        spans = [
            slot.plan.lost_after for slot in self.slots if slot.plan is not None and slot.cause not in _BEYOND_LEASE
        ]
        return acknowledged_at + _with_margin(min(spans)) if spans else NEVER

    def stop_lost(self, acknowledged_at: float, now: float) -> int:
        """Stops the handlers whose silence has been borne long enough; how many."""
        lost = [
            slot
            for slot in self.slots
            if slot.plan is not None
            and slot.cause not in _BEYOND_LEASE
            and now >= acknowledged_at + _with_margin(slot.plan.lost_after)
        ]
        for slot in lost:
            self.ask(slot, Cause.LOST)
        return len(lost)

    def _held(self) -> Iterator[Claimed]:
        yield from self.queue
        for slot in [*self.slots, *self.strays]:
            if slot.claimed is not None:
                yield slot.claimed

    # --- slots --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        for slot in self.slots:
            self._start(slot)

    async def close(self) -> None:
        """Ends the slots, whatever they do; those that do not end within a moment are left behind."""
        self._closing = True
        for timer in (self._timer, self._board_timer):
            if timer is not None:
                timer.cancel()
        for task in self._tasks:
            task.cancel()
        for slot in self.slots:
            if slot.hand is not None:
                slot.hand.release()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=0.1)

    def _start(self, slot: Slot) -> None:
        slot.task = asyncio.create_task(self._live(slot), name=f"mainspring slot {slot.number}")
        self._tasks.add(slot.task)
        slot.task.add_done_callback(self._tasks.discard)

    async def _live(self, slot: Slot) -> None:
        monotonic, queue = self._monotonic, self.queue
        while not slot.abandoned:
            if not queue:
                await self._rest(slot)
                continue
            now = monotonic()
            slice_end = now + SLICE
            while queue and not slot.abandoned:
                now = await self._attempt(slot, queue.popleft(), now)
                if len(queue) == self._low:
                    self._want_more()
                if now >= slice_end:
                    await asyncio.sleep(0)
                    now = monotonic()
                    slice_end = now + SLICE
        self.strays.discard(slot)
        self.on_change()

    async def _rest(self, slot: Slot) -> None:
        self._idle.append(slot)
        self._want_more()
        self.on_change()
        if self.board is not None and len(self._idle) == len(self.slots):
            self.board.rest()
        slot.waiter = asyncio.get_running_loop().create_future()
        try:
            await slot.waiter
        finally:
            slot.waiter = None

    def _rouse(self, slot: Slot) -> None:
        if self.board is not None and self._board_timer is None:
            self._beat_board()
        if slot.waiter is not None and not slot.waiter.done():
            slot.waiter.set_result(None)

    # --- one attempt --------------------------------------------------------------------------------------------

    async def _attempt(self, slot: Slot, claimed: Claimed, now: float) -> float:
        """From the payload to the ending; returns when it ended."""
        plan = self._plans.get((claimed.task, claimed.document)) or self._make_plan(claimed)
        deadline = now + plan.timeout
        run = RunContext(claimed, self._sink, self._instant_of(deadline))
        slot.claimed, slot.plan, slot.run, slot.cause = claimed, plan, run, None
        slot.since = self._taken_at = now
        slot.deadline = deadline
        if deadline < self._armed_for:
            self._arm(deadline)
        if self.board is not None:
            self.board.begin(claimed.id.bytes, claimed.fence, deadline, now)
        CURRENT.set(run)
        error: BaseException | None = None
        result: bytes | None = None
        try:
            args, kwargs = plan.decode(claimed.payload)
            if self._around is None and not plan.threaded:
                value = await plan.function(*args, **kwargs)
            else:
                value = await self._call(slot, plan, run, args, kwargs)
            if value is not None:
                result = outcome.bounded(plan.encode(value))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as raised:  # whatever a handler raises becomes an outcome of its run
            if self._closing:
                raise
            error = raised
        if error is not None or slot.cause is not None:
            _calm()
        ended = self._monotonic()
        self._settle(slot, claimed, plan, result, error, ended)
        took = ended - now
        mean = self._mean
        self._mean = took if mean is None else mean + (took - mean) * (0.5 if took > mean else 0.05)
        return ended

    async def _call(
        self, slot: Slot, plan: Plan, run: RunContext, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        if self._around is not None:
            return await self._around(run, lambda _: _call_plainly(slot, plan, args, kwargs))
        return await _call_plainly(slot, plan, args, kwargs)

    def _settle(
        self,
        slot: Slot,
        claimed: Claimed,
        plan: Plan,
        result: bytes | None,
        error: BaseException | None,
        ended: float,
    ) -> None:
        """The handler has stopped: its slot is free, and unless its run has ended without it, so has the run."""
        cause, abandoned, run = slot.cause, slot.abandoned, slot.run
        since = slot.since
        slot.claimed = slot.plan = slot.run = slot.cause = None
        slot.deadline = NEVER
        if run is not None and run.log_gap:
            self._sink.gap(run)
        if abandoned:
            self._return(slot, claimed, plan, cause, ended)
            return
        finished_at = self._store_time.at(ended)
        ending: Ending | None
        if error is None and cause is None:
            ending = self._completed(claimed, result, finished_at)
        else:
            ending = self._stopped(claimed, plan, cause, error, finished_at)
        if ending is not None:
            self._deliver(Finished(claimed, ending, ended - since, finished_at))

    def _completed(self, claimed: Claimed, result: bytes | None, finished_at: Instant) -> Ending:
        if claimed.attempt == 1 and not (claimed.spent or claimed.deaths or claimed.attempts):
            return Ending(claimed.id, claimed.fence, State.COMPLETED, Outcome.COMPLETED, result)
        following = outcome.after_return(claimed)
        return outcome.ending_of(
            claimed, following, worker=self._surroundings.worker, finished_at=finished_at, result=result
        )

    def _stopped(
        self,
        claimed: Claimed,
        plan: Plan,
        cause: Cause | None,
        error: BaseException | None,
        finished_at: Instant,
    ) -> Ending | None:
        if cause is None:
            assert error is not None
            following = outcome.after_error(claimed, plan.policy, error, self._random())
            text = outcome.describe_error(error)
        else:
            stopped = outcome.after_stop(claimed, plan.policy, cause, self._random())
            if stopped is None:
                return None
            following = stopped
            text = outcome.describe_stop(cause, plan.policy) or ""
        return outcome.ending_of(
            claimed, following, worker=self._surroundings.worker, finished_at=finished_at, error=text or None
        )

    def _make_plan(self, claimed: Claimed) -> Plan:
        task = self._registry.get(claimed.task)
        assert task is not None, f"claimed a run of {claimed.task}, which is not registered here"
        plan = plan_of(task, claimed.document, lease=self._lease)
        if len(self._plans) >= 10_000:
            self._plans.clear()
        self._plans[claimed.task, claimed.document] = plan
        return plan

    def _instant_of(self, deadline: float) -> Instant | None:
        return None if deadline == NEVER else self._store_time.at(deadline)

    # --- deadlines ----------------------------------------------------------------------------------------------

    def _arm(self, moment: float) -> None:
        if moment >= self._armed_for:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = moment
        delay = max(_SOONEST, moment - self._monotonic())
        self._timer = self._later(delay, self._look_at_deadlines)

    def _look_at_deadlines(self) -> None:
        now = self._monotonic()
        self._timer, self._armed_for = None, NEVER
        for slot in list(self.slots):
            if slot.deadline > now or slot.claimed is None:
                continue
            if slot.cause is None:
                self.ask(slot, Cause.TIMEOUT)
            else:
                self._abandon(slot, slot.claimed, slot.cause, now)
        nearest = min((slot.deadline for slot in self.slots), default=NEVER)
        if nearest != NEVER:
            self._arm(nearest)

    def _abandon(self, slot: Slot, claimed: Claimed, cause: Cause, now: float) -> None:
        """The handler did not stop in time: its run ends without it, where the cause allows to say so."""
        assert slot.plan is not None
        slot.abandoned = True
        slot.deadline = NEVER
        if cause in _TOLD_WHEN_ABANDONED:
            finished_at = self._store_time.at(now)
            ending = self._stopped(claimed, slot.plan, cause, None, finished_at)
            assert ending is not None
            self._deliver(Finished(claimed, ending, now - slot.since, finished_at))
        self._bus.publish(events.RunsAbandoned(self._surroundings.worker, [claimed.id], cause.value))
        if not slot.plan.threaded:
            self.slots.remove(slot)
            self.strays.add(slot)
            successor = Slot(slot.number)
            self.slots.append(successor)
            self._start(successor)
        self.on_abandoned()

    def _return(self, slot: Slot, claimed: Claimed, plan: Plan, cause: Cause | None, ended: float) -> None:
        """An abandoned handler has ended after all. A thread's slot is whole again; a coroutine's has a successor."""
        if cause in (Cause.RELEASE, Cause.LOST):
            finished_at = self._store_time.at(ended)
            ending = self._stopped(claimed, plan, cause, None, finished_at)
            if ending is not None:
                self._deliver(Finished(claimed, ending, ended - slot.since, finished_at))
        if plan.threaded:
            slot.abandoned = False

    # --- measures -----------------------------------------------------------------------------------------------

    def _ahead(self, now: float, free: int) -> int:
        """Who asks for one run at a time wants to see their order, and a run's start is its claim: ahead only in a flood."""
        mean = self._mean
        if len(self.slots) <= _FEW_SLOTS and self._in_a_row < _FLOOD_RUNS:
            return 0
        if mean is None or (free == 0 and now - self._taken_at > _HORIZON):
            return 0
        return min(self._prefetch_max, int(len(self.slots) * _HORIZON / max(mean, 1e-6)))

    def _beat_board(self) -> None:
        self._board_timer = None
        if self.board is None or self._closing or len(self._idle) == len(self.slots):
            return
        nearest = min((slot.deadline for slot in self.slots if slot.plan and not slot.plan.threaded), default=NEVER)
        self.board.beat(self._monotonic(), nearest)
        self._board_timer = self._later(_BOARD_BEAT, self._beat_board)

    def _later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Not in the context of the run that happens to be under way: its log is not ours to write to."""
        return asyncio.get_running_loop().call_later(delay, callback, context=self._context)


# Nobody can stop a thread: one that looks at `cancelled` ends within this, for the others waiting changes nothing.
_THREAD_GRACE = 1.0
_TOLD_WHEN_ABANDONED = (Cause.TIMEOUT, Cause.CANCEL)
_BEYOND_LEASE = (Cause.LOST, Cause.REVOKED)


def _with_margin(lost_after: float) -> float:
    """A worker that cannot renew stops this long after its last acknowledged renewal was sent."""
    return lost_after * 0.9


def _calm() -> None:
    """Our own cancel has done its work once the handler has stopped: the slot's task goes on uncancelled."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


async def _call_plainly(slot: Slot, plan: Plan, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    if plan.threaded:
        return await slot.thread().call(plan.function, args, kwargs)
    return await plan.function(*args, **kwargs)


def _chain(
    middleware: Sequence[Middleware],
) -> Callable[[RunContext, Callable[[RunContext], Awaitable[object]]], Awaitable[object]] | None:
    """All middleware as one, the first registered outermost; None where there is none."""
    if not middleware:
        return None

    def wrap(inner: Middleware, outer: Middleware) -> Middleware:
        return lambda run, call_next: outer(run, lambda same: inner(same, call_next))

    return reduce(wrap, reversed(middleware))


def _ignore() -> None: ...
