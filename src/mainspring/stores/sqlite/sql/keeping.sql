-- The small tables: queues, idempotency keys, logs, numbers; and what is thrown away in time.

-- name: queues
-- Queues that somebody paused or limited.
SELECT name, paused, limits FROM queues WHERE namespace = ?1;

-- name: count_queued
-- How much is queued by lane: the index of the claim is read, no row.
SELECT lane, count(*) FROM runs INDEXED BY runs_claim WHERE state = 0 GROUP BY lane;

-- name: count_running
-- How much runs by lane.
SELECT lane, count(*) FROM runs INDEXED BY runs_running WHERE worker IS NOT NULL GROUP BY lane;

-- name: count_aside
-- How much is held, retrying, parked or unknown by lane.
SELECT lane, state, count(*) FROM runs INDEXED BY runs_aside WHERE state > 1 GROUP BY state, lane;

-- name: count_jobs
-- How many definitions there are by lane and state.
SELECT lane, state, count(*) FROM jobs GROUP BY lane, state;

-- name: set_paused
-- From the answer on no claim takes from a paused queue.
INSERT INTO queues (namespace, name, paused) VALUES (?1, ?2, ?3)
ON CONFLICT (namespace, name) DO UPDATE SET paused = excluded.paused;

-- name: set_limits
-- How many, or how often; None for no limit.
INSERT INTO queues (namespace, name, limits) VALUES (?1, ?2, ?3)
ON CONFLICT (namespace, name) DO UPDATE SET limits = excluded.limits;

-- name: idempotent_row
-- What is known of an Idempotency-Key.
SELECT body_hash, created_at, begun_at, status, body FROM idempotency WHERE namespace = ?1 AND key = ?2;

-- name: begin_idempotent
-- A new key, or one whose day is over.
INSERT OR REPLACE INTO idempotency (namespace, key, body_hash, created_at, begun_at) VALUES (?1, ?2, ?3, ?4, ?4);

-- name: take_over_key
-- Whoever reserved it has not answered for too long.
UPDATE idempotency SET begun_at = ?3 WHERE namespace = ?1 AND key = ?2;

-- name: end_idempotent
-- The same request gets this answer from now on.
UPDATE idempotency SET status = ?3, body = ?4 WHERE namespace = ?1 AND key = ?2;

-- name: forget_idempotent
-- The request failed before anything was stored.
DELETE FROM idempotency WHERE namespace = ?1 AND key = ?2;

-- name: append_logs
-- One line of a run.
INSERT INTO logs (run_id, attempt, at, level, message, fields) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: logs
-- The lines of a run in order.
SELECT number, attempt, at, level, message, fields FROM logs
WHERE run_id = ?1 AND number > ?2 ORDER BY number LIMIT ?3;

-- name: next_fire
-- The soonest instant at which a job of the namespace is due.
SELECT jobs.scheduled_at FROM jobs INDEXED BY jobs_due
WHERE jobs.state IN (0, 2) AND jobs.scheduled_at IS NOT NULL
  AND (?1 IS NULL OR jobs.lane IN (SELECT value FROM json_each(?1)))
ORDER BY jobs.scheduled_at LIMIT 1;

-- name: head_of_priority
-- The oldest run of the next lower priority of a lane.
SELECT priority, ready_at FROM runs INDEXED BY runs_claim
WHERE lane = ?1 AND state = 0 AND priority < ?2 ORDER BY priority DESC, ready_at LIMIT 1;

-- name: count_workers
-- Those that were not declared lost.
SELECT count(*) FROM workers WHERE lost_at IS NULL;

-- name: count_schedulers
-- Those that have not stopped.
SELECT count(*) FROM schedulers;

-- name: count_dead_letters
-- Failed runs that wait for a person.
SELECT count(*) FROM dead_letters
WHERE EXISTS (SELECT 1 FROM history
              WHERE history.id = dead_letters.id
                AND (?1 IS NULL OR history.lane IN (SELECT value FROM json_each(?1))));

-- name: drop_history
-- The oldest ended runs, unless they wait for a person: from the head to the first that is young enough.
DELETE FROM history WHERE number IN (
    SELECT old.number FROM history AS old
    WHERE old.number < coalesce(
              (SELECT young.number FROM history AS young WHERE young.finished_at >= ?1 ORDER BY young.number LIMIT 1),
              9223372036854775807)
      AND (old.state <> 11 OR NOT EXISTS (SELECT 1 FROM dead_letters WHERE dead_letters.id = old.id))
    ORDER BY old.number LIMIT ?2);

-- name: drop_logs
-- The oldest lines.
DELETE FROM logs WHERE number IN (
    SELECT number FROM (SELECT number, at FROM logs ORDER BY number LIMIT ?2) WHERE at < ?1);

-- name: drop_answers
-- Idempotency keys whose day is over.
DELETE FROM idempotency WHERE created_at <= ?1;

-- name: drop_dead_letters
-- Failed runs that nobody looked at in time.
DELETE FROM dead_letters WHERE failed_at < ?1;

-- name: drop_lost_workers
-- Workers that were declared lost and hold nothing any more.
DELETE FROM workers WHERE lost_at < ?1 AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.worker = workers.id);

-- name: drop_silent_schedulers
-- Schedulers that were killed and never said that they stop.
DELETE FROM schedulers WHERE beat_at < ?1;
