"""Clients that submit and meddle: retry lost replies with the same ids, cancel, pause, trigger, replay."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from mainspring.client import editing
from mainspring.core.errors import CallerError, StoreUnavailable, WorldError
from mainspring.core.firing import plan_firing
from mainspring.core.model import SECOND, JobState, Kind, Lane, NewJob, RunFilter
from mainspring.core.states import State
from mainspring.ports.store import JobEdit, NewRun
from tests.simulation.evidence import Submission
from tests.simulation.loop import Process

if TYPE_CHECKING:
    from tests.simulation.world import World

T = TypeVar("T")

PLANS: tuple[tuple[str, int], ...] = (
    ("work", 10),
    ("flaky", 4),
    ("broken", 2),
    ("later", 2),
    ("discards", 1),
    ("cancels", 1),
    ("stubborn", 1),
    ("long", 2),
    ("poison", 1),
    ("delayed", 4),
    ("recurring", 3),
)


class Client:
    """One client process; its history of what it asked and learnt goes to the evidence."""

    def __init__(self, world: World, process: Process, random: Random) -> None:
        self.world = world
        self.process = process
        self._random = random
        self._store = world.store_for(process)
        self._stopped = False
        self._sent: list[Submission] = []

    def stop(self) -> None:
        self._stopped = True

    async def run(self) -> None:
        gap = self.world.options.faulty_for / (self.world.options.jobs + 1)
        for _ in range(self.world.options.jobs):
            if self._stopped:
                break
            await asyncio.sleep(gap * 2 * self._random.random())
            await self._submit()
            if self._random.random() < 0.3:
                await self._meddle()
        await self._put_right()

    async def _submit(self) -> None:
        plan = self._random.choices([name for name, _ in PLANS], [weight for _, weight in PLANS])[0]
        job, submission = self._job(plan)
        self.world.evidence.submissions[job.id] = submission
        self._sent.append(submission)
        repeat = False
        for _ in range(60):
            try:
                await self._store.submit([job], repeat=repeat)
            except StoreUnavailable as error:
                repeat = repeat or error.unknown_outcome
                await asyncio.sleep(0.2 + self._random.random())
            except CallerError:
                submission.accepted = False
                return
            else:
                submission.accepted = True
                return

    def _job(self, plan: str) -> tuple[NewJob, Submission]:
        identity = self.world.fresh_id(self._random)
        now = self.world.now()
        submission = Submission(identity, plan, now)
        task, arguments, document = self._wish(plan, submission)
        kind, next_at = Kind.IMMEDIATE, None
        if plan == "delayed":
            kind, next_at = Kind.DELAYED, now + round(self._random.random() * 10 * SECOND)
            document["at"] = "unused"
            submission.scheduled_at = next_at
        elif plan == "recurring":
            submission.every = self._random.choice([1, 2, 5])
            kind, next_at = Kind.RECURRING, now + submission.every * SECOND
            document["every"] = submission.every
            _draw_rules(submission, document)
        if plan == "delayed":
            del document["at"]
        job = NewJob(
            id=identity,
            lane=Lane("default", self._random.choice(["default", "other"]), task),
            kind=kind,
            priority=self._random.choice([10, 50, 90]),
            payload=json.dumps(arguments).encode(),
            document=json.dumps(document, sort_keys=True, separators=(",", ":")) or None,
            next_at=next_at,
            scheduled_at=next_at,
        )
        return job, submission

    def _wish(self, plan: str, submission: Submission) -> tuple[str, dict[str, Any], dict[str, Any]]:
        document: dict[str, Any] = {"retry": {"initial": "1s", "max": "8s", "max_attempts": 3}, "cancel_grace": "1s"}
        seconds = self._random.choice([0.01, 0.1, 1.0])
        if plan == "poison":
            document["retry"]["max_attempts"] = submission.max_attempts = 8
            return "poison", {}, document
        if plan == "stubborn":
            document["timeout"] = "2s"
            submission.timeout = 2 * SECOND
            return "stubborn", {"seconds": 6.0}, document
        if plan == "long":
            submission.on_lost = document["on_lost"] = self._random.choice(["retry", "fail", "hold"])
            return "work", {"seconds": self.world.options.lease * 1.5}, document
        if plan == "flaky":
            return "flaky", {"seconds": seconds, "failures": self._random.choice([1, 2])}, document
        if plan in ("delayed", "recurring", "work"):
            return "work", {"seconds": seconds}, document
        return plan, {"seconds": seconds}, document

    async def _meddle(self) -> None:
        if not self._sent:
            return
        victim = self._random.choice(self._sent)
        acts = [self._cancel, self._pause_job, self._pause_queue, self._trigger, self._replay, self._edit]
        act = self._random.choice(acts)
        try:
            await act(victim)
        except (WorldError, CallerError):
            self.world.evidence.counts["meddling_refused"] += 1

    async def _cancel(self, victim: Submission) -> None:
        await self._store.cancel([victim.id])
        self.world.evidence.cancels[victim.id] = self.world.now()
        self.world.evidence.counts["cancel"] += 1

    async def _pause_job(self, victim: Submission) -> None:
        if victim.plan != "recurring":
            return
        if await self._set_state(victim.id, JobState.PAUSED):
            began = self.world.now()
            spans = self.world.evidence.job_pauses.setdefault(victim.id, [])
            await asyncio.sleep(3 * self._random.random())
            spans.append((began, self.world.now()))
            await self._insist(lambda: self._set_state(victim.id, JobState.ACTIVE))

    async def _set_state(self, job_id: UUID, state: JobState) -> bool:
        view = (await self._store.jobs([job_id]))[0]
        if view is None or view.job.state.ended or view.job.state is state:
            return False
        job = view.job
        firing = plan_firing(job, self.world.now(), paused=job.state is JobState.PAUSED)
        edit = JobEdit(
            job_id,
            job.version,
            state=state,
            next_at=firing.next_at if firing else job.next_at,
            next_scheduled_at=firing.next_scheduled_at if firing else job.scheduled_at,
            fired_through=firing.fired_through if firing else None,
            firing=firing,
        )
        return await self._store.change(edit) is not None

    async def _edit(self, victim: Submission) -> None:
        """Another interval from now on: what was due before is decided by the old one."""
        recurring = [one for one in self._sent if one.plan == "recurring"]
        chosen = victim if victim.plan == "recurring" or not recurring else self._random.choice(recurring)
        view = (await self._store.jobs([chosen.id]))[0]
        if chosen.plan != "recurring" or view is None or view.job.state.ended:
            return
        definition = editing.merge(view.job, {"every": self._random.choice([1, 2, 3, 5])})
        edit = editing.redefine(view.job, definition, self.world.now(), None)
        if edit is not None and await self._store.change(edit) is not None:
            self.world.evidence.counts["edit"] += 1

    async def _pause_queue(self, victim: Submission) -> None:
        name = self._random.choice(["default", "other"])
        spans = self.world.evidence.queue_pauses.setdefault(name, [])
        await self._store.pause_queue(name, paused=True)
        began = self.world.now()
        await asyncio.sleep(2 * self._random.random())
        spans.append((began, self.world.now()))
        await self._insist(lambda: self._store.pause_queue(name, paused=False))

    async def _trigger(self, victim: Submission) -> None:
        run = NewRun(self.world.fresh_id(self._random), victim.id, "trigger")
        await self._store.add_runs([run], respect_overlap=True)
        self.world.evidence.counts["trigger"] += 1

    async def _replay(self, victim: Submission) -> None:
        dead = await self._store.dead_letters(RunFilter(), limit=5)
        if dead:
            letter = dead[0]
            run = NewRun(self.world.fresh_id(self._random), letter.job_id, "replay", replaces=letter.id)
            self.world.evidence.redeemed.add(letter.id)
            await self._store.add_runs([run], redeem_dead_letters=True)
            self.world.evidence.counts["replay"] += 1

    async def _put_right(self) -> None:
        """At the end nothing stays paused, and what nobody knows is resolved by the operator."""
        for name in ("default", "other"):
            await self._insist(partial(self._store.pause_queue, name, paused=False))
        for submission in self._sent:
            if submission.plan == "recurring":
                await self._insist(partial(self._set_state, submission.id, JobState.ACTIVE))
        await asyncio.sleep(20)
        for submission in self._sent:
            if submission.plan == "recurring":  # else a schedule of high priority may starve a small cluster for ever
                await self._insist(partial(self._store.cancel, [submission.id]))
        while True:
            await asyncio.sleep(5)
            unknown = await self._insist(lambda: self._store.list_runs(RunFilter(status=("unknown",)), limit=100))
            for run in unknown or []:
                await self._insist(partial(self._store.resolve, run.id, State.COMPLETED))

    async def _insist(self, act: Callable[[], Awaitable[T]]) -> T | None:
        for _ in range(100):
            try:
                return await act()
            except WorldError:
                await asyncio.sleep(0.3)
            except CallerError:
                return None
        return None


def _draw_rules(submission: Submission, document: dict[str, Any]) -> None:
    """From the job's own id, so that what else a seed draws stays as it was."""
    random = Random(submission.id.int)
    submission.overlap = document["overlap"] = random.choice(["skip", "queue_one", "queue_all", "cancel", "allow"])
    submission.misfire = random.choice(["skip", "once", "all"])
    submission.misfire_limit = random.choice([1, 3, 100])
    document["misfire"] = {"policy": submission.misfire, "limit": submission.misfire_limit}
