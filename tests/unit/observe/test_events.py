"""The bus never lets a listener stop what happens; logs and metrics hear whole batches."""

import io
import json
import logging
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.core.model import Claimed, Ending
from mainspring.core.states import Outcome, State
from mainspring.observe import events, logs
from mainspring.observe.metrics import Metrics
from mainspring.observe.tally import Histogram, Tally

WORKER = UUID(int=1)


def claimed(task: str = "send", *, attempt: int = 1, lateness: int = 2_000) -> Claimed:
    return Claimed(
        UUID(int=2), 1, attempt, 0, 0, task, b"{}", None, 0, 0, UUID(int=2), "mail", 50, False, None, lateness, 0
    )


def ended(task: str = "send", outcome: Outcome = Outcome.COMPLETED) -> events.EndedRun:
    return events.EndedRun(claimed(task), Ending(UUID(int=2), 1, State.COMPLETED, outcome), 5_000)


def test_every_event_has_its_line() -> None:
    catalogue = {each.__name__ for each in events.Event.__subclasses__()}
    assert catalogue == set(logs._TOLD)


def test_a_failing_listener_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bus = events.Bus()
    heard: list[events.Event] = []

    def broken(event: events.Event) -> None:
        raise ValueError("no")

    bus.subscribe(broken)
    bus.subscribe(heard.append)
    bus.publish(events.WorkerStopped(WORKER))
    assert heard == [events.WorkerStopped(WORKER)]
    assert "WorkerStopped" in caplog.text


def test_who_stopped_listening_hears_nothing() -> None:
    bus = events.Bus()
    heard: list[events.Event] = []
    stop = bus.subscribe(heard.append)
    assert bus.heard
    stop()
    bus.publish(events.WorkerStopped(WORKER))
    assert (heard, bus.heard) == ([], False)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (events.RunsEnded(WORKER, [ended(), ended(outcome=Outcome.FAILED)]), "2 attempts ended"),
        (events.RunsClaimed(WORKER, [claimed()]), "1 runs claimed"),
        (events.WorkerLost(WORKER, "death"), "worker lost"),
        (events.StoreLost("feed", "refused"), "does not answer feed"),
        (events.RunsRescued([events.RescuedRun(WORKER, WORKER, "queued", "death")]), "1 runs rescued"),
        (events.RunsFired(WORKER, 1, [WORKER], 0, 1500), "1 runs, 0 skipped"),
        (events.JobsSubmitted([WORKER], ["send"]), "1 jobs submitted"),
    ],
)
def test_events_become_lines(event: events.Event, said: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "mainspring"):
        logs.log_event(event)
    assert said in caplog.text


def test_json_lines_carry_the_fields() -> None:
    record = logging.LogRecord("mainspring.worker", logging.INFO, "", 0, "hi\n%s", ("x",), None)
    record.fields = {"worker": "w"}
    line = json.loads(logs.JsonFormatter().format(record))
    assert (line["message"], line["worker"], line["level"]) == ("hi\nx", "w", "info")


def test_text_lines_stay_one_line() -> None:
    record = logging.LogRecord("mainspring.worker", logging.INFO, "", 0, "a\nb\x1b[1m", (), None)
    record.fields = {"run": "two words"}
    line = logs.TextFormatter().format(record)
    assert "\n" not in line
    assert "\x1b" not in line
    assert line.endswith('run="two words"')


def test_configuring_sets_up_the_root_logger() -> None:
    root = logging.getLogger()
    handlers, level, stream = root.handlers[:], root.level, io.StringIO()
    try:
        logs.configure(level="warning", form="json", stream=stream)
        logging.getLogger("mainspring.worker").warning("told")
        logging.getLogger("mainspring.worker").info("not told")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["told"]


def test_metrics_count_batches() -> None:
    metrics, bus = Metrics(), events.Bus()
    bus.subscribe(metrics.listen)
    bus.publish(events.JobsSubmitted([WORKER, WORKER], ["send", "send"]))
    bus.publish(events.RunsClaimed(WORKER, [claimed(), claimed(attempt=2)]))
    bus.publish(events.RunsEnded(WORKER, [ended(), ended(outcome=Outcome.FAILED), ended()]))
    bus.publish(events.RunsFired(WORKER, 3, [WORKER], 2, 1500))
    bus.publish(events.RunsRescued([events.RescuedRun(WORKER, WORKER, "queued", "death")]))
    text = metrics.text().decode()
    assert 'mainspring_jobs_submitted_total{task="send"} 2.0' in text
    assert 'mainspring_runs_claimed_total{queue="mail",task="send"} 2.0' in text
    assert 'mainspring_runs_ended_total{outcome="completed",queue="mail",task="send"} 2.0' in text
    assert 'mainspring_run_lateness_seconds_bucket{le="0.0025",queue="mail"} 1.0' in text
    assert 'mainspring_run_duration_seconds_count{task="send"} 3.0' in text
    assert "mainspring_runs_skipped_total 2.0" in text
    assert "mainspring_runs_rescued_total 1.0" in text
    assert all(line.startswith(("#", "mainspring_")) for line in text.splitlines())


def test_a_bucket_holds_what_is_at_most_its_bound() -> None:
    histogram = Histogram()
    for microseconds in (1_000, 1_001, 10**10):
        histogram.add(microseconds)
    buckets = dict(histogram.buckets())
    assert (buckets["0.001"], buckets["0.0025"], buckets["+Inf"]) == (1, 2, 3)


@given(st.lists(st.integers(0, 10**11) | st.sampled_from([1_000, 2_500, 3_600_000_000]), max_size=60))
def test_a_batch_falls_into_the_same_buckets_as_one_by_one(spans: list[int]) -> None:
    singly, together = Histogram(), Histogram()
    for span in spans:
        singly.add(span)
    together.add_many(spans)
    assert together.sums() == singly.sums()


def test_a_tally_travels_between_processes() -> None:
    worker, server, bus = Tally(), Metrics(), events.Bus()
    bus.subscribe(worker.listen)
    assert worker.take() == b""
    bus.publish(events.RunsClaimed(WORKER, [claimed()]))
    bus.publish(events.RunsEnded(WORKER, [ended()]))
    first = worker.take()
    assert b"\n" not in first
    assert worker.take() == b""
    bus.publish(events.RunsEnded(WORKER, [ended(), ended()]))
    for taken in (first, worker.take()):
        server.tally.add(taken)
    text = server.text().decode()
    assert 'mainspring_runs_ended_total{outcome="completed",queue="mail",task="send"} 3.0' in text
    assert 'mainspring_run_lateness_seconds_bucket{le="0.0025",queue="mail"} 1.0' in text
    assert 'mainspring_run_duration_seconds_count{task="send"} 3.0' in text
