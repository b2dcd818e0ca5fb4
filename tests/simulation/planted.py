"""Bugs planted on purpose. A judge that does not catch these proves nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from mainspring.core.model import Ending, Evidence, Firing, NewJob, SkippedOccurrence, Verdict
from mainspring.core.states import Event, State
from mainspring.stores.memory import MemoryStore
from mainspring.worker.settings import WorkerSettings

Plant = Callable[[MemoryStore], None]


def no_fence_at_finish(memory: MemoryStore) -> None:
    """Whoever finishes is believed, whatever fence it carries."""
    finish = memory.finish

    async def careless(worker: UUID, endings: Sequence[Ending], **named: Any) -> list[Verdict]:
        verdicts = []
        for ending in endings:
            run = memory.memory.tables.runs.get(ending.id)
            open_run = run is not None and run.state is State.RUNNING
            holder = run.worker if open_run and run is not None and run.worker is not None else worker
            fence = run.fence if run is not None else ending.fence
            verdicts += await finish(holder, [replace(ending, fence=fence)], **named)
        return verdicts

    _plant(memory, "finish", careless)


def fence_not_raised(memory: MemoryStore) -> None:
    """A claim hands out the fence of the claim before."""
    claim = memory.claim

    async def careless(*arguments: Any, **named: Any) -> Any:
        claimed = await claim(*arguments, **named)
        for run in claimed:
            if run.fence > 1:
                memory.memory.tables.runs[run.id].fence = run.fence - 1
        return [run._replace(fence=max(1, run.fence - 1)) for run in claimed]

    _plant(memory, "claim", careless)


def rescue_of_the_living(memory: MemoryStore) -> None:
    """Now and then a worker is declared lost that lives and beats."""
    beat = memory.beat
    calls = 0

    async def careless(workers: Sequence[UUID], **named: Any) -> Any:
        nonlocal calls
        calls += 1
        answer = await beat(workers, **named)
        if calls % 40 == 0:
            await memory.declare_lost(workers[0], Evidence.SILENCE)
        return answer

    _plant(memory, "beat", careless)


def silence_believed_too_soon(memory: MemoryStore) -> None:
    """A lease shorter than promised: half of it."""
    workers = memory.workers

    async def careless(**named: Any) -> Any:
        return [replace(worker, lease=worker.lease // 4) for worker in await workers(**named)]

    _plant(memory, "workers", careless)


def accepted_but_not_stored(memory: MemoryStore) -> None:
    """The answer goes out before the commit, and sometimes the commit never comes."""
    submit = memory.submit
    calls = 0

    async def careless(jobs: Sequence[NewJob], **named: Any) -> Any:
        nonlocal calls
        calls += 1
        saved = copy.deepcopy(memory.memory.tables) if calls % 10 == 0 else None
        answer = await submit(jobs, **named)
        if saved is not None:
            for job in jobs:
                run = memory.memory.tables.runs.get(job.id)
                if run is not None:
                    await memory.cancel([job.id], delete=True)
                    memory.memory.tables.history.pop(job.id, None)
        return answer

    _plant(memory, "submit", careless)


def repeat_inserted_after_the_end(memory: MemoryStore) -> None:
    """A repeated send is not looked for among what has ended."""
    submit = memory.submit

    async def careless(jobs: Sequence[NewJob], *, repeat: bool = False, **named: Any) -> Any:
        for job in jobs:
            ended = memory.memory.tables.history.pop(job.id, None) if repeat else None
            if ended is not None:
                memory.memory.tables.runs_of_job.pop(job.id, None)
        return await submit(jobs, repeat=repeat, **named)

    _plant(memory, "submit", careless)


def attempts_forgotten_at_rescue(memory: MemoryStore) -> None:
    """A rescue sets the spent attempts back to none, deaths too."""
    rescue = memory.rescue

    async def careless(**named: Any) -> Any:
        rescued = await rescue(**named)
        for one in rescued:
            run = memory.memory.tables.runs.get(one.run_id)
            if run is not None:
                run.spent = run.deaths = 0
        return rescued

    _plant(memory, "rescue", careless)


def fired_through_before_the_rows(memory: MemoryStore) -> None:
    """The job moves on, and now and then its runs are not made."""
    fire = memory.fire
    calls = 0

    async def careless(firings: Sequence[Firing], **named: Any) -> Any:
        nonlocal calls
        calls += 1
        return await fire([replace(one, runs=()) if calls % 5 == 0 else one for one in firings], **named)

    _plant(memory, "fire", careless)


def cancel_ignored_after_claim(memory: MemoryStore) -> None:
    """A cancel of a running run is answered and forgotten."""
    cancel = memory.cancel

    async def careless(ids: Sequence[UUID], **named: Any) -> Any:
        outcomes = await cancel(ids, **named)
        for outcome in outcomes:
            for run_id in outcome.asked:
                memory.memory.tables.runs[run_id].cancel_requested_at = None
        return outcomes

    _plant(memory, "cancel", careless)


def failed_without_dead_letter(memory: MemoryStore) -> None:
    finish = memory.finish

    async def careless(worker: UUID, endings: Sequence[Ending], **named: Any) -> Any:
        verdicts = await finish(worker, endings, **named)
        for ending in endings:
            memory.memory.tables.dead_letters.pop(ending.id, None)
        return verdicts

    _plant(memory, "finish", careless)


def retried_at_once(memory: MemoryStore) -> None:
    """No backoff after a failure."""
    finish = memory.finish

    async def careless(worker: UUID, endings: Sequence[Ending], **named: Any) -> Any:
        return await finish(worker, [replace(ending, wait=0) for ending in endings], **named)

    _plant(memory, "finish", careless)


def paused_queue_served(memory: MemoryStore) -> None:
    pause = memory.pause_queue

    async def careless(name: str, *, paused: bool, **named: Any) -> Any:
        answer = await pause(name, paused=paused, **named)
        await pause(name, paused=False, **named)
        return answer

    _plant(memory, "pause_queue", careless)


def deaths_not_counted(memory: MemoryStore) -> None:
    """A process death is taken for mere silence, and costs no attempt: poison goes round for ever."""
    rescue = memory.rescue

    async def careless(**named: Any) -> Any:
        rescued = await rescue(**named)
        for one in rescued:
            run = memory.memory.tables.runs.get(one.run_id)
            if run is not None:
                run.deaths = 0
                run.spent = min(run.spent, 1)
        return rescued

    _plant(memory, "rescue", careless)


def overlap_forgotten(memory: MemoryStore) -> None:
    """Whatever waits for a run of its job starts beside it."""
    fire = memory.fire

    async def careless(firings: Sequence[Firing], **named: Any) -> Any:
        answers = await fire(firings, **named)
        for one in answers:
            for run_id in one.runs:
                run = memory.memory.tables.runs[run_id]
                if run.state is State.HELD:
                    run.reason = None
                    memory.memory.tables.move(run, Event.OPEN, await memory.now())
        return answers

    _plant(memory, "fire", careless)


def misfired_runs_dropped(memory: MemoryStore) -> None:
    """What was to be caught up is recorded as missed instead."""
    fire = memory.fire

    async def careless(firings: Sequence[Firing], **named: Any) -> Any:
        return await fire([_without_catch_up(one) for one in firings], **named)

    _plant(memory, "fire", careless)


def _without_catch_up(firing: Firing) -> Firing:
    dropped = [SkippedOccurrence(run.nominal, run.scheduled_at, "misfire") for run in firing.runs if run.catch_up]
    kept = tuple(run for run in firing.runs if not run.catch_up)
    return replace(firing, runs=kept, skips=(*firing.skips, *dropped))


def lease_counted_from_the_reply(settings: WorkerSettings) -> WorkerSettings:
    """The worker trusts its lease far longer than the store does."""
    return replace(settings, lease=settings.lease * 3)


PLANTED: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        no_fence_at_finish,
        fence_not_raised,
        rescue_of_the_living,
        silence_believed_too_soon,
        accepted_but_not_stored,
        repeat_inserted_after_the_end,
        attempts_forgotten_at_rescue,
        fired_through_before_the_rows,
        cancel_ignored_after_claim,
        failed_without_dead_letter,
        retried_at_once,
        paused_queue_served,
        deaths_not_counted,
        overlap_forgotten,
        misfired_runs_dropped,
    )
}


def _plant(memory: MemoryStore, verb: str, careless: Callable[..., Any]) -> None:
    setattr(memory, verb, careless)
