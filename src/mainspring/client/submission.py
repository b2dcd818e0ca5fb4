"""From a checked submission to what the store is handed: its id, its lane, its instants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from mainspring.core.calendars import Calendar
from mainspring.core.errors import InvalidInput, Problem, TooLarge
from mainspring.core.firing import anchor_of
from mainspring.core.model import DEFAULT_NAMESPACE, Instant, Kind, Lane, NewJob
from mainspring.core.occurrences import NO_CALENDARS, next_after
from mainspring.core.schedule import refuse_if_over
from mainspring.core.submission import Submission, read_submission

REASON_AT_IN_PAST = "at_in_past"
BATCH_PROBLEMS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """One job that is asked for. `payload` stands for the document's where the arguments are encoded already;
    `defaults` are what the task's decorator says; `problems` what was found wrong with it so far."""

    document: object
    payload: bytes | None = None
    defaults: Mapping[str, object] | None = None
    problems: tuple[Problem, ...] = ()

    def read(self, identity: UUID) -> Submission:
        """The checked submission, or everything that is wrong."""
        try:
            read = read_submission(self.document, self.defaults, encoded_payload=self.payload, job_id=identity)
        except InvalidInput as error:
            raise InvalidInput([*error.problems, *self.problems]) from None
        if self.problems:
            raise InvalidInput(self.problems)
        return read


def prepare(
    request: Request,
    identity: UUID,
    now: Instant,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    created_by: str | None = None,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
) -> NewJob:
    """Checks the request and turns it into a job of this id, accepted now."""
    read = request.read(identity)
    return new_job(read, identity, now, namespace=namespace, created_by=created_by, calendars=calendars)


def new_job(
    read: Submission,
    identity: UUID,
    now: Instant,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    created_by: str | None = None,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
) -> NewJob:
    next_at, scheduled_at, reason = first_instants(read, identity, now, calendars)
    due = read.kind is Kind.IMMEDIATE or (read.kind is Kind.DELAYED and next_at is None)
    expires_at = None
    if read.expires_in is not None and read.kind is not Kind.RECURRING:
        expires_at = max(scheduled_at or now, now) + read.expires_in
    return NewJob(
        id=identity,
        lane=Lane(namespace, read.queue, read.task),
        kind=Kind.IMMEDIATE if due else read.kind,
        priority=read.priority,
        payload=read.payload,
        document=read.text,
        key=read.key,
        next_at=next_at,
        scheduled_at=scheduled_at,
        expires_at=expires_at,
        reason=reason,
        created_by=created_by,
    )


def first_instants(
    read: Submission, identity: UUID, now: Instant, calendars: Mapping[str, Calendar] = NO_CALENDARS
) -> tuple[Instant | None, Instant | None, str | None]:
    """(next_at, scheduled_at, reason) of a job that is accepted now; a time that has passed is now, and says so."""
    if read.kind is Kind.IMMEDIATE:
        return None, None, None
    if read.kind is Kind.DELAYED:
        due = read.at if read.at is not None else now + (read.delay or 0)
        if due > now:
            return due, due, None
        return None, None if read.at is None else due, REASON_AT_IN_PAST if due < now else None
    assert read.schedule is not None
    refuse_if_over(read.schedule, now, calendars=calendars)
    first = next_after(read.schedule, now, anchor=anchor_of(identity), calendars=calendars)
    if first is None:
        raise InvalidInput.at(f"/{read.schedule.kind}", "never fires: no occurrence is left after now")
    return first.nominal, first.scheduled_at, None


def prepare_all(
    requests: Sequence[Request],
    ids: Sequence[UUID],
    now: Instant,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    created_by: str | None = None,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
) -> list[NewJob]:
    """All of a batch, or everything that is wrong with it, each problem under its index."""
    jobs: list[NewJob] = []
    problems: list[Problem] = []
    more = 0
    for index, (request, identity) in enumerate(zip(requests, ids, strict=True)):
        try:
            made = prepare(request, identity, now, namespace=namespace, created_by=created_by, calendars=calendars)
            jobs.append(made)
        except InvalidInput as error:
            room = BATCH_PROBLEMS_MAX - len(problems)
            problems += [Problem(f"/{index}{each.pointer}", each.detail) for each in error.problems[:room]]
            more += max(0, len(error.problems) - room)
        except TooLarge as error:
            raise TooLarge(f"/{index}{error}") from None
    if more:
        problems.append(Problem("", f"{more} further problems are not listed"))
    if problems:
        raise InvalidInput(problems)
    return jobs
