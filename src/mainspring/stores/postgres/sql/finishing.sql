-- How attempts end: the common case in one statement, everything else in steps of one transaction.

-- name: finish_completed
-- The common case: completed, nobody asked to cancel it, no key to free, nothing that waits for it.
WITH clock AS MATERIALIZED (
    SELECT mainspring.instant($6) AS now
), ended AS (
    DELETE FROM mainspring.runs r
    USING unnest((SELECT $1::uuid[]), (SELECT $2::bigint[]), (SELECT $3::bytea[]), (SELECT $4::text[]))
       AS k (id, fence, ended_result, ended_attempts)
    -- Spelled so that only the primary key fits: the index of what runs keeps dead entries of the worker's past. The
    -- arrays are hidden in subqueries: by their length alone the planner would rather read the whole table.
    WHERE (r.id = k.id) AND r.fence = k.fence AND r.worker IS NOT DISTINCT FROM $5 AND r.state + 0 = 1
      AND r.cancel_requested_at IS NULL AND r.key IS NULL AND r.kind <> 2
    RETURNING r.id, r.job_id, r.ready_at, r.scheduled_at, r.created_at, r.started_at, r.lateness, r.expires_at,
              r.cancel_requested_at, r.fence, r.lane, r.attempt, r.spent, r.deaths, r.kind, r.priority,
              r.catch_up, r.stands_for_job, r.worker, r.replaces, r.payload, r.origin, r.document, r.key,
              r.reason, r.progress, r.created_by,
              coalesce(k.ended_attempts, r.attempts) AS ended_attempts, k.ended_result
)
INSERT INTO mainspring.history (
    id, job_id, ready_at, scheduled_at, created_at, started_at, finished_at, lateness, expires_at,
    cancel_requested_at, fence, lane, attempt, spent, deaths, count, kind, state, priority, catch_up,
    stands_for_job, worker, replaces, payload, origin, document, key, reason, progress, error, attempts,
    created_by, result)
SELECT id, job_id, ready_at, scheduled_at, created_at, started_at, (SELECT now FROM clock), lateness, expires_at, cancel_requested_at,
       fence, lane, attempt, spent, deaths, 1, kind, 10, priority, catch_up, stands_for_job, worker, replaces,
       payload, origin, document, key, reason, progress, NULL, ended_attempts, created_by, ended_result
  FROM ended

-- name: finished_here
-- Which of these this very transaction has moved to history; an equal ending that was accepted before is another's row.
SELECT h.id, h.fence
  FROM mainspring.history h
 WHERE h.id = ANY ($1::uuid[]) AND h.finished_at >= $2 AND h.xmin = pg_catalog.pg_current_xact_id()::xid

-- name: lock_jobs_of_runs
-- Before the runs: whoever fires a job holds its row, so that nobody overlooks a run that is being made to wait.
SELECT j.id
  FROM mainspring.jobs j
  JOIN (SELECT DISTINCT r.job_id FROM mainspring.runs r WHERE r.id = ANY ($1::uuid[]) AND r.kind = 2) AS k
    ON (j.id = k.job_id) AND j.shard = get_byte(uuid_send(k.job_id), 15)::smallint
 ORDER BY j.id
   FOR UPDATE OF j

-- name: lock_runs
-- Live runs by id, as they are once nobody else holds them.
SELECT r.id, r.job_id, r.fence, r.worker, r.state, r.cancel_requested_at, r.kind, r.lane, r.attempt
  FROM mainspring.runs r
 WHERE r.id = ANY ($1::uuid[])
 ORDER BY r.id
   FOR UPDATE OF r

-- name: end_runs
-- Moves locked runs to history: their keys are free, a failed one is a dead letter.
WITH ended AS (
    DELETE FROM mainspring.runs r
    USING unnest((SELECT $1::uuid[]), (SELECT $2::smallint[]), (SELECT $3::text[]), (SELECT $4::bytea[]),
                 (SELECT $5::text[]), (SELECT $6::integer[]), (SELECT $7::integer[]), (SELECT $8::text[]))
       AS k (id, state, reason, result, error, spent, deaths, attempts)
    WHERE (r.id = k.id)
    RETURNING r.id, r.job_id, r.ready_at, r.scheduled_at, r.created_at, r.started_at, r.lateness, r.expires_at,
              r.cancel_requested_at, r.fence, r.lane, r.attempt, r.kind, r.priority, r.catch_up,
              r.stands_for_job, r.worker, r.replaces, r.payload, r.origin, r.document, r.key, r.progress,
              r.created_by, k.state AS end_state, coalesce(k.reason, r.reason) AS reason,
              CASE WHEN k.spent IS NULL THEN r.error ELSE k.error END AS error,
              coalesce(k.spent, r.spent) AS spent, coalesce(k.deaths, r.deaths) AS deaths, coalesce(k.attempts,
              r.attempts) AS attempts, k.result
), freed AS (
    DELETE FROM mainspring.uniques u
    USING ended e JOIN mainspring.lanes l ON l.id = e.lane
    WHERE e.key IS NOT NULL AND e.stands_for_job
      AND u.namespace = l.namespace AND u.kind = 'key' AND u.key = e.key AND u.job_id = e.job_id
), dead AS (
    INSERT INTO mainspring.dead_letters (
        id, job_id, ready_at, scheduled_at, created_at, started_at, finished_at, lateness, expires_at,
        cancel_requested_at, fence, lane, attempt, spent, deaths, count, kind, state, priority, catch_up,
        stands_for_job, worker, replaces, payload, origin, document, key, reason, progress, error, attempts,
        created_by, result)
    SELECT id, job_id, ready_at, scheduled_at, created_at, started_at, $9, lateness, expires_at, cancel_requested_at,
           fence, lane, attempt, spent, deaths, 1, kind, end_state, priority, catch_up, stands_for_job, worker,
           replaces, payload, origin, document, key, reason, progress, error, attempts, created_by, result
      FROM ended
     WHERE end_state = 11
        ON CONFLICT (id) DO NOTHING
)
INSERT INTO mainspring.history (
    id, job_id, ready_at, scheduled_at, created_at, started_at, finished_at, lateness, expires_at,
    cancel_requested_at, fence, lane, attempt, spent, deaths, count, kind, state, priority, catch_up,
    stands_for_job, worker, replaces, payload, origin, document, key, reason, progress, error, attempts,
    created_by, result)
SELECT id, job_id, ready_at, scheduled_at, created_at, started_at, $9, lateness, expires_at, cancel_requested_at,
       fence, lane, attempt, spent, deaths, 1, kind, end_state, priority, catch_up, stands_for_job, worker,
       replaces, payload, origin, document, key, reason, progress, error, attempts, created_by, result
  FROM ended
RETURNING job_id, kind

-- name: leave_workers
-- Locked runs whose attempt is over and who have not ended: they belong to no worker until the next claim.
UPDATE mainspring.runs r
   SET state = k.state,
       ready_at = coalesce(k.ready_at, r.ready_at),
       reason = coalesce(k.reason, r.reason),
       error = k.error,
       spent = k.spent,
       deaths = k.deaths,
       attempts = coalesce(k.attempts, r.attempts),
       attempt = r.attempt - k.taken_back,
       lateness = CASE WHEN r.attempt = k.taken_back THEN NULL ELSE r.lateness END,
       worker = NULL,
       started_at = NULL
  FROM unnest((SELECT $1::uuid[]), (SELECT $2::smallint[]), (SELECT $3::bigint[]), (SELECT $4::text[]),
              (SELECT $5::text[]), (SELECT $6::integer[]), (SELECT $7::integer[]), (SELECT $8::text[]),
              (SELECT $9::integer[]))
    AS k (id, state, ready_at, reason, error, spent, deaths, attempts, taken_back)
 WHERE (r.id = k.id)
RETURNING r.lane, r.state

-- name: release_overlap
-- Of jobs whose rows we hold: opens the oldest run held for overlap where nothing else of the job is live.
UPDATE mainspring.runs r
   SET state = 0, reason = NULL
 WHERE r.id IN (
    SELECT DISTINCT ON (h.job_id) h.id
      FROM mainspring.runs h
     WHERE h.job_id = ANY ($1::uuid[]) AND h.job_id <> h.id AND h.state = 2 AND h.reason = 'overlap'
       AND NOT EXISTS (
            SELECT 1 FROM mainspring.runs o
             WHERE (o.job_id = h.job_id) AND o.job_id <> o.id AND NOT (o.state = 2 AND coalesce(o.reason, '') = 'overlap'))
     ORDER BY h.job_id, h.scheduled_at, h.id)
RETURNING r.lane

-- name: set_progress
-- The progress of running runs, guarded by their fence.
UPDATE mainspring.runs r
   SET progress = k.progress
  FROM unnest((SELECT $1::uuid[]), (SELECT $2::bigint[]), (SELECT $3::text[])) AS k (id, fence, progress)
 WHERE (r.id = k.id) AND r.fence = k.fence AND r.worker IS NOT DISTINCT FROM $4 AND r.state + 0 = 1
RETURNING r.id

-- name: claimed_unseen
-- Runs of a worker whose claim it never saw the answer of.
SELECT r.id, r.fence
  FROM mainspring.runs r
 WHERE r.worker = $1 AND r.state = 1 AND NOT r.id = ANY ($2::uuid[])
 ORDER BY r.id
   FOR UPDATE OF r

-- name: give_back
-- Locked runs whose handler never began: back to their place, the attempt taken back, the fence kept.
UPDATE mainspring.runs r
   SET state = 0, worker = NULL, started_at = NULL, attempt = r.attempt - 1,
       lateness = CASE WHEN r.attempt = 1 THEN NULL ELSE r.lateness END
 WHERE r.id = ANY ($1::uuid[]) AND r.state = 1
RETURNING r.lane
