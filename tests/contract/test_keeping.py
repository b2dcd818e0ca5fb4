"""Idempotency keys, logs, schedulers, upkeep, clock and hints: the small verbs (H2, H3)."""

from __future__ import annotations

import asyncio

import pytest

from mainspring.core.model import DAY, HOUR, MINUTE, SECOND, Evidence, JobState, LogLine, RunFilter
from mainspring.core.states import State
from mainspring.ports.store import Hint, JobEdit, Store, Topic
from tests.contract.helpers import (
    T0,
    accept,
    cancel,
    claim,
    completed,
    given_completed_run,
    given_failed_run,
    given_job,
    given_recurring_job,
    given_retrying_run,
    given_running_run,
    given_worker,
    immediate_job,
    new_id,
    recurring_job,
    run_of,
)

BODY, OTHER = b"a" * 32, b"b" * 32


class TestIdempotency:
    """H3."""

    async def test_a_new_key_is_ours_and_the_same_in_flight_is_not(self, store: Store) -> None:
        mine = await store.begin_idempotent("k", BODY, now=T0)
        assert (mine.mine, mine.created_at) == (True, T0)
        again = await store.begin_idempotent("k", BODY, now=T0 + SECOND)
        assert (again.mine, again.same_body, again.status, again.created_at) == (False, True, None, T0)

    async def test_the_answer_is_kept_byte_for_byte(self, store: Store) -> None:
        await store.begin_idempotent("k", BODY, now=T0)
        await store.end_idempotent("k", 201, b'{"id":"\xc3\xa9"}')
        kept = await store.begin_idempotent("k", BODY, now=T0 + 23 * HOUR)
        assert (kept.mine, kept.status, kept.body, kept.same_body) == (False, 201, b'{"id":"\xc3\xa9"}', True)

    @pytest.mark.parametrize("answered", [False, True])
    async def test_another_body_is_told_apart(self, store: Store, answered: bool) -> None:
        await store.begin_idempotent("k", BODY, now=T0)
        if answered:
            await store.end_idempotent("k", 201, b"{}")
        for now in (T0, T0 + 2 * MINUTE):
            other = await store.begin_idempotent("k", OTHER, now=now)
            assert (other.mine, other.same_body) == (False, False)

    async def test_in_flight_too_long_is_taken_over_with_its_first_time(self, store: Store) -> None:
        """So that the ids derived from it are the same again."""
        await store.begin_idempotent("k", BODY, now=T0)
        assert not (await store.begin_idempotent("k", BODY, now=T0 + 60 * SECOND)).mine
        taken = await store.begin_idempotent("k", BODY, now=T0 + 60 * SECOND + 1)
        assert (taken.mine, taken.created_at) == (True, T0)
        assert not (await store.begin_idempotent("k", BODY, now=T0 + 90 * SECOND)).mine

    async def test_a_key_is_free_again_after_a_day_or_when_forgotten(self, store: Store) -> None:
        await store.begin_idempotent("k", BODY, now=T0)
        await store.end_idempotent("k", 200, b"{}")
        fresh = await store.begin_idempotent("k", OTHER, now=T0 + DAY)
        assert (fresh.mine, fresh.created_at) == (True, T0 + DAY)
        await store.forget_idempotent("k")
        assert (await store.begin_idempotent("k", BODY, now=T0 + DAY)).mine

    async def test_keys_are_of_their_namespace(self, store: Store) -> None:
        await store.begin_idempotent("k", BODY, now=T0)
        assert (await store.begin_idempotent("k", OTHER, namespace="other", now=T0)).mine
        await store.end_idempotent("k", 200, b"1", namespace="other")
        assert (await store.begin_idempotent("k", BODY, now=T0)).status is None

    async def test_of_two_at_once_one_is_it(self, store: Store, other: Store) -> None:
        for number in range(10):
            key = f"k{number}"
            both = await asyncio.gather(
                store.begin_idempotent(key, BODY, now=T0), other.begin_idempotent(key, BODY, now=T0)
            )
            assert sorted(answer.mine for answer in both) == [False, True]


class TestLogs:
    async def test_lines_come_in_order_with_numbers_to_go_on_from(self, store: Store) -> None:
        run_id, another = new_id(), new_id()
        lines = [LogLine(run_id, 1, T0 + number, "info", f"line {number}", '{"a":1}') for number in range(5)]
        await store.append_logs([*lines[:2], LogLine(another, 1, T0, "error", "other"), *lines[2:4]])
        await store.append_logs(lines[4:])
        entries = await store.logs(run_id)
        assert [line for _, line in entries] == lines
        numbers = [number for number, _ in entries]
        assert numbers == sorted(set(numbers))
        assert numbers[0] > 0
        assert [line for _, line in await store.logs(run_id, after=numbers[2])] == lines[3:]
        assert [line for _, line in await store.logs(run_id, limit=2)] == lines[:2]
        assert await store.logs(run_id, after=numbers[-1]) == []

    async def test_a_run_without_lines_has_none(self, store: Store) -> None:
        await store.append_logs([])
        assert await store.logs(new_id()) == []

    async def test_messages_are_kept_as_they_are(self, store: Store) -> None:
        run_id = new_id()
        line = LogLine(run_id, 2, T0, "warning", "naïve ☃ 'quoted' \"twice\" %s {x}\nsecond line", None)
        await store.append_logs([line])
        assert [kept for _, kept in await store.logs(run_id)] == [line]


class TestSchedulers:
    async def test_a_beat_answers_all_that_live(self, store: Store) -> None:
        first, second = new_id(), new_id()
        assert await store.scheduler_beat(first, host="a", silent_after=10 * SECOND, now=T0) == [first]
        both = await store.scheduler_beat(second, host="b", silent_after=10 * SECOND, now=T0 + SECOND)
        assert sorted(both) == [first, second]
        assert await store.scheduler_beat(second, host="b", silent_after=10 * SECOND, now=T0 + MINUTE) == [second]

    async def test_they_are_listed_with_host_and_time(self, store: Store) -> None:
        one = new_id()
        await store.scheduler_beat(one, host="a", silent_after=10 * SECOND, now=T0)
        assert await store.schedulers(silent_after=10 * SECOND, now=T0 + SECOND) == [(one, "a", T0)]
        assert await store.schedulers(silent_after=10 * SECOND, now=T0 + MINUTE) == []

    async def test_one_that_stopped_is_gone_at_once(self, store: Store) -> None:
        one = new_id()
        await store.scheduler_beat(one, host="a", silent_after=HOUR, now=T0)
        await store.scheduler_stop(one)
        assert await store.schedulers(silent_after=HOUR, now=T0) == []


class TestUpkeep:
    async def test_drops_old_history_and_keeps_the_rest(self, store: Store) -> None:
        _, old = await given_completed_run(store)
        later = T0 + 40 * DAY
        _, fresh = await given_completed_run(store, now=later)
        live = await given_job(store, immediate_job(task="strange", at=later), now=later)
        await store.upkeep(history_days=30, now=later)
        assert await store.runs([old]) == [None]
        assert await store.jobs([old]) == [None]
        assert [run.id for run in await store.list_runs(RunFilter())] == [live, fresh]

    async def test_keeps_history_for_its_days(self, store: Store) -> None:
        _, run_id = await given_completed_run(store)
        await store.upkeep(history_days=30, now=T0 + 29 * DAY)
        assert (await run_of(store, run_id)).state is State.COMPLETED

    async def test_loses_no_dead_letter_with_the_history(self, store: Store) -> None:
        """C2."""
        _, run_id = await given_failed_run(store)
        await store.upkeep(history_days=7, now=T0 + 20 * DAY)
        assert [letter.id for letter in await store.dead_letters(RunFilter())] == [run_id]
        await store.upkeep(history_days=7, now=T0 + 31 * DAY)
        assert await store.dead_letters(RunFilter()) == []

    async def test_drops_old_logs(self, store: Store) -> None:
        old, fresh = new_id(), new_id()
        later = T0 + 10 * DAY
        await store.append_logs([LogLine(old, 1, T0, "info", "old"), LogLine(fresh, 1, later, "info", "new")])
        await store.upkeep(log_days=7, now=later)
        assert await store.logs(old) == []
        assert len(await store.logs(fresh)) == 1

    async def test_drops_answers_after_a_day(self, store: Store) -> None:
        await store.begin_idempotent("k", BODY, now=T0)
        await store.end_idempotent("k", 200, b"{}")
        await store.upkeep(now=T0 + DAY + HOUR)
        assert (await store.begin_idempotent("k", OTHER, now=T0 + DAY + HOUR)).mine

    async def test_never_forgets_a_lost_worker_that_holds_runs(self, store: Store) -> None:
        """H1."""
        worker, claimed = await given_running_run(store)
        await store.declare_lost(worker, Evidence.STALL, now=T0)
        await store.upkeep(now=T0 + 5 * DAY)
        [rescued] = await store.rescue(now=T0 + 5 * DAY)
        assert (rescued.run_id, rescued.reason) == (claimed.id, "stall")

    async def test_may_run_again_and_beside_itself(self, store: Store, other: Store) -> None:
        await given_completed_run(store)
        later = T0 + 60 * DAY
        done = await asyncio.gather(store.upkeep(now=later), other.upkeep(now=later))
        assert all(isinstance(counts, dict) for counts in done)
        again = await store.upkeep(now=later)
        assert again.get("history", 0) == 0


async def test_the_clock_goes_forward(store: Store, other: Store) -> None:
    first = await store.now()
    second = await other.now()
    third = await store.now()
    assert first <= third
    assert abs(second - first) < HOUR


async def test_without_a_given_time_the_stores_clock_counts(store: Store) -> None:
    before = await store.now()
    new = immediate_job(task="strange", at=before)
    await store.submit([new])
    run = await run_of(store, new.id)
    assert before <= run.created_at <= await store.now()


async def test_to_close_twice_is_to_close_once(store: Store) -> None:
    await store.close()
    await store.close()


class Listening:
    """Collects hints; waits for a certain one by name."""

    def __init__(self, store: Store) -> None:
        self.heard: list[Hint] = []
        self._arrived = asyncio.Event()
        self.stop = store.subscribe(self._hear)

    def _hear(self, hint: Hint) -> None:
        self.heard.append(hint)
        self._arrived.set()

    async def wait_for(self, topic: Topic, key: str = "") -> None:
        async with asyncio.timeout(10):
            while Hint(topic, key) not in self.heard:
                self._arrived.clear()
                await self._arrived.wait()


class TestHints:
    """H2: they only save waiting, but they come."""

    async def test_what_became_ready_is_told_by_its_queue(self, store: Store) -> None:
        worker = await given_worker(store)
        ears = Listening(store)
        await given_job(store, immediate_job(queue="mail"))
        await ears.wait_for(Topic.READY, "mail")
        ears.heard.clear()
        [claimed] = await claim(store, worker)
        await accept(store, worker, completed(claimed))
        _, waiting = await given_retrying_run(store, immediate_job(queue="web"))
        ears.heard.clear()
        await store.promote(now=T0 + HOUR)
        await ears.wait_for(Topic.READY, "web")
        assert (await run_of(store, waiting)).state is State.QUEUED

    async def test_another_program_hears_them_too(self, store: Store, other: Store) -> None:
        await given_worker(store)
        ears = Listening(other)
        await given_job(store, immediate_job(queue="mail"))
        if store.capabilities.hints:
            await ears.wait_for(Topic.READY, "mail")

    async def test_a_worker_is_told_to_ask_for_its_orders(self, store: Store) -> None:
        worker, claimed = await given_running_run(store)
        ears = Listening(store)
        await cancel(store, claimed.id)
        await ears.wait_for(Topic.WORKER, str(worker))
        ears.heard.clear()
        await store.drain(worker)
        await ears.wait_for(Topic.WORKER, str(worker))

    async def test_a_new_or_changed_schedule_is_told(self, store: Store) -> None:
        ears = Listening(store)
        new = recurring_job(first=T0 + HOUR)
        job = await given_recurring_job(store, new)
        await ears.wait_for(Topic.JOBS, str(T0 + HOUR))
        ears.heard.clear()
        await store.change(
            JobEdit(job.id, 1, state=JobState.PAUSED, next_at=job.next_at, next_scheduled_at=job.scheduled_at), now=T0
        )
        await ears.wait_for(Topic.JOBS)

    async def test_a_newly_known_task_opens_its_queues(self, store: Store) -> None:
        await given_job(store, immediate_job(task="new", queue="mail"))
        ears = Listening(store)
        await given_worker(store, tasks=["new"])
        await ears.wait_for(Topic.READY, "mail")

    async def test_a_resumed_queue_is_told(self, store: Store) -> None:
        await given_worker(store)
        await store.pause_queue("mail", paused=True)
        await given_job(store, immediate_job(queue="mail"))
        ears = Listening(store)
        await store.pause_queue("mail", paused=False)
        await ears.wait_for(Topic.READY, "mail")

    async def test_who_stopped_listening_hears_no_more(self, store: Store) -> None:
        await given_worker(store)
        deaf, ears = Listening(store), Listening(store)
        deaf.stop()
        await given_job(store, immediate_job(queue="mail"))
        await ears.wait_for(Topic.READY, "mail")
        assert deaf.heard == []
