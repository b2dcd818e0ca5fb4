"""Memory and a real store side by side through random histories: the same answers, the same rows at every step.

`now` is given to both, so nothing may differ but what the contract leaves open (the order of what is rescued, which
queue has its turn): claims are of one queue here, and lists are compared sorted where the contract gives no order.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict
from typing import ClassVar, TypeVar
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from mainspring.core.errors import MainspringError
from mainspring.core.model import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Claimed,
    DueOccurrence,
    Ending,
    Evidence,
    Firing,
    Job,
    JobFilter,
    JobState,
    JobView,
    Kind,
    NewJob,
    Run,
    RunFilter,
    SkippedOccurrence,
    TaskInfo,
    Verdict,
    WorkerInfo,
)
from mainspring.core.states import State
from mainspring.ports.store import JobEdit, NewRun, Store
from mainspring.stores.memory import MemoryStore
from tests.contract.helpers import (
    T0,
    cancelled,
    completed,
    delayed_job,
    failed,
    given_back,
    immediate_job,
    in_doubt,
    new_id,
    recurring_job,
    retrying,
    worker_info,
)

Answer = TypeVar("Answer")
QUEUES = ("a", "b")
RULES = ("skip", "queue_one", "queue_all", "cancel", "allow")
KEYS = st.sampled_from([None, None, "k1", "k2"])
PICK = st.integers(min_value=0, max_value=1_000_000)
HOWS = ("completed", "completed", "failed", "retrying", "unstarted", "released", "cancelled", "unknown")


class SideBySide(RuleBasedStateMachine):
    """Every rule does one thing to both stores and compares what they answer."""

    make_real: ClassVar[Callable[[], tuple[Store, Callable[[], None]]]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.now = T0
        self.memory: Store = MemoryStore()
        self.real, self.clean_up = type(self).make_real()
        self.workers: list[UUID] = []
        self.living: list[UUID] = []
        self.claims: list[tuple[UUID, Claimed]] = []
        self.current: dict[UUID, tuple[UUID, Claimed]] = {}
        self.ids: list[UUID] = []
        self.sent: list[NewJob] = []
        self.plans: list[Firing] = []

    @initialize()
    def open(self) -> None:
        self.runner.run(self.real.open())
        self._new_worker()

    def teardown(self) -> None:
        self.runner.run(self.real.close())
        self.runner.close()
        self.clean_up()

    # --- time and workers

    @rule(step=st.sampled_from([1, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE]))
    def time_passes(self, step: int) -> None:
        self.now += step

    @rule()
    def a_worker_begins(self) -> None:
        self._new_worker()

    def _new_worker(self) -> None:
        worker = new_id(self.now)
        self.workers.append(worker)
        self.living.append(worker)
        self.both(lambda store: store.register(worker_info(worker), [TaskInfo("task")], now=self.now))

    @rule(pick=PICK, evidence=st.sampled_from(list(Evidence)))
    def a_worker_is_declared_lost(self, pick: int, evidence: Evidence) -> None:
        worker = self._one_of(self.workers, pick)
        culprit = next((claimed.id for holder, claimed in self.current.values() if holder == worker), None)
        self.both(lambda store: store.declare_lost(worker, evidence, culprit=culprit, now=self.now))
        self._mourn(worker)

    @rule(pick=PICK)
    def a_worker_stops(self, pick: int) -> None:
        worker = self._one_of(self.workers, pick)
        self.both(lambda store: store.deregister(worker, now=self.now))
        self._mourn(worker)

    def _mourn(self, worker: UUID) -> None:
        """There is always somebody who can work."""
        if worker in self.living:
            self.living.remove(worker)
        if not self.living:
            self._new_worker()

    @rule(chance=st.floats(min_value=0, max_value=0.999))
    def lost_runs_are_rescued(self, chance: float) -> None:
        self.both(lambda store: store.rescue(random_value=chance, now=self.now), normal=sorted)

    @rule()
    def workers_ask_for_orders(self) -> None:
        def orders(answers: Iterable[object]) -> object:
            return [plain(answer) for answer in answers]

        self.both(lambda store: store.beat(self.workers, now=self.now), normal=orders)

    # --- jobs

    @rule(
        queue=st.sampled_from(QUEUES),
        priority=st.sampled_from([10, 50, 90]),
        key=KEYS,
        task=st.sampled_from(["task", "task", "task", "strange"]),
        on_lost=st.sampled_from(["retry", "fail", "hold"]),
        expires=st.sampled_from([None, None, 30 * SECOND]),
    )
    def an_immediate_job_arrives(
        self, queue: str, priority: int, key: str | None, task: str, on_lost: str, expires: int | None
    ) -> None:
        expires_at = None if expires is None else self.now + expires
        new = immediate_job(
            task=task,
            queue=queue,
            priority=priority,
            key=key,
            expires_at=expires_at,
            at=self.now,
            on_lost=on_lost,
            tags=[queue],
        )
        self._submit(new)

    @rule(wait=st.sampled_from([-HOUR, SECOND, MINUTE]), queue=st.sampled_from(QUEUES), key=KEYS)
    def a_delayed_job_arrives(self, wait: int, queue: str, key: str | None) -> None:
        self._submit(delayed_job(self.now + wait, queue=queue, key=key, at=self.now))

    @rule(overlap=st.sampled_from(RULES), queue=st.sampled_from(QUEUES), key=KEYS, expires=st.booleans())
    def a_recurring_job_arrives(self, overlap: str, queue: str, key: str | None, expires: bool) -> None:
        span = "90s" if expires else None
        self._submit(recurring_job(queue=queue, key=key, at=self.now, overlap=overlap, expires_in=span))

    def _submit(self, new: NewJob) -> None:
        self.sent.append(new)
        self.ids.append(new.id)
        self.both(lambda store: store.submit([new], now=self.now))

    @precondition(lambda self: self.sent)
    @rule(pick=PICK)
    def a_send_is_repeated(self, pick: int) -> None:
        """Also long after the first one ended; a deleted recurring job alone is not remembered."""
        new = self._one_of(self.sent, pick)
        if new.kind is Kind.RECURRING and self.runner.run(self.memory.jobs([new.id])) == [None]:
            return
        self.both(lambda store: store.submit([new], repeat=True, now=self.now))

    @precondition(lambda self: self.ids)
    @rule(pick=PICK, delete=st.sampled_from([False, False, True]), running=st.booleans())
    def something_is_cancelled(self, pick: int, delete: bool, running: bool) -> None:
        ids = list(self.current) if running and self.current else self.ids
        identity = self._one_of(ids, pick)

        def normal(outcomes: Iterable[object]) -> object:
            return [plain(outcome, unordered=("ended", "asked")) for outcome in outcomes]

        self.both(lambda store: store.cancel([identity], delete=delete, now=self.now), normal=normal)

    @rule(pick=PICK, priority=st.sampled_from([None, 20, 80]), state=st.sampled_from(["keep", "pause", "resume"]))
    def a_job_is_edited(self, pick: int, priority: int | None, state: str) -> None:
        rows = self._rows()
        if not rows:
            return
        job = self._one_of(rows, pick)
        if job.state.ended:
            return
        goes_on = JobState.ACTIVE if job.kind is Kind.RECURRING else JobState.SCHEDULED
        wanted = {"keep": None, "pause": JobState.PAUSED, "resume": goes_on}[state]
        edit = JobEdit(
            job.id,
            job.version,
            state=wanted,
            priority=priority,
            next_at=job.next_at,
            next_scheduled_at=job.scheduled_at,
        )
        self.both(lambda store: store.change(edit, now=self.now))

    # --- firing

    @rule(extra=st.integers(min_value=0, max_value=3), skip=st.booleans(), catch_up=st.booleans(), last=st.booleans())
    def what_is_due_fires(self, extra: int, skip: bool, catch_up: bool, last: bool) -> None:
        due = self.both(lambda store: store.due_jobs(None, until=self.now))
        plans = [_plan(job, extra, skip=skip, catch_up=catch_up, last=last) for job in due or ()]
        self.plans += plans
        fired = self.both(lambda store: store.fire(plans, now=self.now))
        self.ids += [run_id for one in fired or () for run_id in one.runs]

    @precondition(lambda self: self.plans)
    @rule(pick=PICK)
    def an_old_plan_is_fired_again(self, pick: int) -> None:
        plan = self._one_of(self.plans, pick)
        self.both(lambda store: store.fire([plan], now=self.now))

    @rule()
    def the_janitor_passes(self) -> None:
        self.both(lambda store: store.promote(now=self.now))
        self.both(lambda store: store.expire(now=self.now))

    # --- working

    @rule(pick=PICK, queue=st.sampled_from(QUEUES), count=st.integers(min_value=1, max_value=5), suspects=st.booleans())
    def runs_are_claimed(self, pick: int, queue: str, count: int, suspects: bool) -> None:
        self._claim(self._one_of(self.living, pick), queue, count, suspects=suspects)

    @rule(pick=PICK)
    def a_lost_worker_tries_to_claim(self, pick: int) -> None:
        self._claim(self._one_of(self.workers, pick), "a", 1, suspects=True)

    @rule(pick=PICK, queue=st.sampled_from(QUEUES))
    def a_job_arrives_and_is_claimed(self, pick: int, queue: str) -> None:
        self._submit(immediate_job(queue=queue, at=self.now))
        self._claim(self._one_of(self.living, pick), queue, 3, suspects=True)

    def _claim(self, worker: UUID, queue: str, count: int, *, suspects: bool) -> None:
        claimed = self.both(
            lambda store: store.claim(
                worker, tasks=["task"], queues=[queue], count=count, suspects=suspects, now=self.now
            )
        )
        for one in claimed or ():
            self.claims.append((worker, one))
            self.current[one.id] = (worker, one)

    @precondition(lambda self: self.current)
    @rule(pick=PICK, how=st.sampled_from(HOWS), last=st.booleans())
    def an_attempt_ends(self, pick: int, how: str, last: bool) -> None:
        worker, claimed = self._one_of(list(self.current.values()), -1 if last else pick)
        verdicts = self.both(lambda store: store.finish(worker, [_ending(how, claimed)], now=self.now))
        if verdicts == [Verdict.ACCEPTED]:
            del self.current[claimed.id]

    @precondition(lambda self: self.claims)
    @rule(pick=PICK, how=st.sampled_from(HOWS), stranger=st.booleans())
    def a_late_or_strange_ending_arrives(self, pick: int, how: str, stranger: bool) -> None:
        """Of an older claim, rather of a run that runs again, or from somebody else's hand."""
        again = [held for held in self.claims if held[1].id in self.current and held != self.current[held[1].id]]
        worker, claimed = self._one_of(again or self.claims, pick)
        if stranger:
            worker = self.workers[0]
        elif claimed.id in self.current:
            worker = self.current[claimed.id][0]
        if self.current.get(claimed.id) != (worker, claimed):
            self.both(lambda store: store.finish(worker, [_ending(how, claimed)], now=self.now))

    @precondition(lambda self: self.current)
    @rule(pick=PICK)
    def a_run_is_given_back_and_claimed_again(self, pick: int) -> None:
        worker, claimed = self._one_of(list(self.current.values()), pick)
        verdicts = self.both(lambda store: store.finish(worker, [given_back(claimed, started=True)], now=self.now))
        if verdicts == [Verdict.ACCEPTED]:
            del self.current[claimed.id]
            self._claim(self._one_of(self.living, pick), claimed.queue, 5, suspects=True)

    @precondition(lambda self: self.claims)
    @rule(pick=PICK)
    def a_run_tells_its_progress(self, pick: int) -> None:
        worker, claimed = self._one_of(self.claims, pick)
        self.both(lambda store: store.progress(worker, [(claimed.id, claimed.fence, '{"value":1}')]))

    # --- single runs and queues

    @precondition(lambda self: self.ids)
    @rule(pick=PICK, overlap=st.booleans())
    def a_job_is_triggered(self, pick: int, overlap: bool) -> None:
        new = NewRun(new_id(self.now), self._one_of(self.ids, pick), "trigger")
        self.ids.append(new.id)
        self.both(lambda store: store.add_runs([new], respect_overlap=overlap, now=self.now))

    @rule(pick=PICK)
    def a_dead_letter_is_replayed(self, pick: int) -> None:
        letters = self.both(lambda store: store.dead_letters(RunFilter()))
        if not letters:
            return
        old = self._one_of(letters, pick)
        new = NewRun(new_id(self.now), old.job_id, "replay", replaces=old.id, payload=b'{"again":1}')
        self.ids.append(new.id)
        self.both(lambda store: store.add_runs([new], redeem_dead_letters=True, now=self.now))

    @precondition(lambda self: self.ids)
    @rule(pick=PICK, state=st.sampled_from([State.COMPLETED, State.FAILED, State.QUEUED]))
    def somebody_decides_about_a_run(self, pick: int, state: State) -> None:
        run_id = self._one_of(self.ids, pick)
        self.both(lambda store: store.resolve(run_id, state, note="seen", now=self.now))
        self.both(lambda store: store.retry_now(run_id, now=self.now))

    @rule(queue=st.sampled_from(QUEUES), paused=st.sampled_from([False, False, True]))
    def a_queue_is_paused_or_resumed(self, queue: str, paused: bool) -> None:
        self.both(lambda store: store.pause_queue(queue, paused=paused))

    @rule(queue=st.sampled_from(QUEUES), sure=st.sampled_from([False, False, False, True]))
    def a_queue_is_purged(self, queue: str, sure: bool) -> None:
        if sure:
            self.both(lambda store: store.purge_queue(queue, now=self.now))

    # --- comparing

    @invariant()
    def the_rows_are_the_same(self) -> None:
        self.both(lambda store: store.list_runs(RunFilter(), limit=1000))
        self.both(lambda store: store.list_jobs(JobFilter(), limit=1000))
        self.both(lambda store: store.dead_letters(RunFilter(), limit=1000))
        self.both(lambda store: store.due_jobs(None, until=self.now + DAY))
        self.both(lambda store: store.workers(lost=True), normal=_workers)
        self.both(_keys)
        self.both(_numbers)

    def both(
        self, verb: Callable[[Store], Awaitable[Answer]], *, normal: Callable[[Answer], object] | None = None
    ) -> Answer | None:
        """What memory answers, after the real store was seen to answer the same; None for the same refusal."""
        expected = self.runner.run(_attempt(verb, self.memory))
        got = self.runner.run(_attempt(verb, self.real))
        if isinstance(expected, MainspringError) or isinstance(got, MainspringError):
            assert type(got) is type(expected), f"memory: {expected!r}\nreal:   {got!r}"
            return None
        told = normal or plain
        assert told(got) == told(expected)
        return expected

    def _rows(self) -> list[Job]:
        views = self.runner.run(self.memory.list_jobs(JobFilter(), limit=1000))
        return [view.job for view in views if view.job.next_at is not None]

    @staticmethod
    def _one_of(items: list[Answer], pick: int) -> Answer:
        return items[pick % len(items)]


# --- what the contract fixes of an answer


def plain(value: object, *, unordered: tuple[str, ...] = ()) -> object:
    """Comparable: without what the contract leaves open, JSON read, rows as dictionaries."""
    if isinstance(value, Run):
        return _run(value)
    if isinstance(value, JobView):
        return _view(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        fields = value._asdict().items()
        return {name: sorted(field) if name in unordered else plain(field) for name, field in fields}
    if isinstance(value, list | tuple):
        return [plain(item, unordered=unordered) for item in value]
    return value


def _run(run: Run) -> dict[str, object]:
    fields = asdict(run) | {"state": State(run.state).word, "attempts": json.loads(run.attempts or "null")}
    if run.state is State.SKIPPED or run.attempt == 0:
        fields.pop("payload")
    return fields


def _view(view: JobView) -> dict[str, object]:
    newest = None if view.last_run is None else view.last_run.id
    job = view.job
    told: dict[str, object] = {"status": view.status, "reason": view.reason, "newest": newest}
    if job.kind is Kind.RECURRING or job.next_at is not None:
        return told | asdict(job)
    by_its_run = ("id", "lane", "kind", "priority", "payload", "document", "key", "created_at", "created_by")
    return told | {name: getattr(job, name) for name in by_its_run}


def _workers(infos: Iterable[object]) -> object:
    """Whether beats are counted is a capability."""
    rows = [asdict(info) for info in infos if isinstance(info, WorkerInfo)]
    return [{name: row[name] for name in row if name not in ("beat", "beat_at", "keeper")} for row in rows]


async def _keys(store: Store) -> list[UUID | None]:
    return [await store.find_key(key) for key in ("k1", "k2")]


async def _numbers(store: Store) -> dict[str, object]:
    stats = await store.stats()
    busy = [queue for queue in stats.queues if queue.paused or queue.queued or queue.running or queue.held]
    return {
        "by_status": {word: count for word, count in stats.by_status.items() if count},
        "queues": sorted((queue.name, queue.paused, queue.queued, queue.running, queue.held) for queue in busy),
        "workers": stats.workers,
        "dead_letters": stats.dead_letters,
        "next_fire_at": stats.next_fire_at,
        "oldest_ready_at": stats.oldest_ready_at,
    }


async def _attempt(verb: Callable[[Store], Awaitable[Answer]], store: Store) -> Answer | MainspringError:
    try:
        return await verb(store)
    except MainspringError as error:
        return error


def _plan(job: Job, extra: int, *, skip: bool, catch_up: bool, last: bool) -> Firing:
    """The due instant and some after it, a minute apart; the first of them perhaps skipped."""
    assert job.next_at is not None
    assert job.scheduled_at is not None
    if job.kind is not Kind.RECURRING:
        due = DueOccurrence(job.next_at, job.scheduled_at)
        return Firing(job.id, job.version, runs=(due,), fired_through=job.next_at)
    nominals = [job.next_at + number * MINUTE for number in range(extra + 1)]
    skips = (SkippedOccurrence(nominals[0], nominals[0], "misfire", 2),) if skip else ()
    following = None if last and extra == 0 else nominals[-1] + MINUTE
    return Firing(
        job.id,
        job.version,
        runs=tuple(DueOccurrence(nominal, nominal, catch_up) for nominal in nominals[len(skips) :]),
        skips=skips,
        fired_through=nominals[-1],
        next_at=following,
        next_scheduled_at=following,
    )


def _ending(how: str, claimed: Claimed) -> Ending:
    endings = {
        "completed": completed(claimed),
        "failed": failed(claimed),
        "retrying": retrying(claimed, wait=30 * SECOND),
        "unstarted": given_back(claimed, started=False),
        "released": given_back(claimed, started=True),
        "cancelled": cancelled(claimed),
        "unknown": in_doubt(claimed),
    }
    return endings[how]


# --- on a store

GENTLE = settings(
    deadline=None,
    stateful_step_count=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def machine_on(make_real: Callable[[], tuple[Store, Callable[[], None]]]) -> type[SideBySide]:
    return type("SideBySideOnAStore", (SideBySide,), {"make_real": staticmethod(make_real)})
