-- What is due, what fires, what waits for its time.

-- name: due_jobs
-- Jobs whose instant has come, soonest first.
SELECT id, lane, kind, state, priority, payload, document, key, next_at, scheduled_at, fired_through, version,
    runs_made, created_at, updated_at, created_by, paused_at, expires_at
FROM jobs INDEXED BY jobs_due
WHERE state IN (0, 2) AND scheduled_at <= ?1
ORDER BY scheduled_at, id LIMIT ?2;

-- name: due_of_shards
-- The same of some shards; the shard of a job is the last byte of its id.
SELECT id, lane, kind, state, priority, payload, document, key, next_at, scheduled_at, fired_through, version,
    runs_made, created_at, updated_at, created_by, paused_at, expires_at
FROM jobs INDEXED BY jobs_due
WHERE state IN (0, 2) AND scheduled_at <= ?1 AND hex(substr(id, 16, 1)) IN (SELECT value FROM json_each(?3))
ORDER BY scheduled_at, id LIMIT ?2;

-- name: coming_jobs
-- The same from after an instant and an id on, without what only a run needs.
SELECT id, lane, kind, state, priority, x'', document, key, next_at, scheduled_at, fired_through, version,
    runs_made, created_at, updated_at, created_by, paused_at, expires_at
FROM jobs INDEXED BY jobs_due
WHERE state IN (0, 2) AND scheduled_at >= ?1 AND scheduled_at <= ?2 AND (scheduled_at > ?1 OR id > ?4)
ORDER BY scheduled_at, id LIMIT ?3;

-- name: coming_of_shards
-- The same of some shards.
SELECT id, lane, kind, state, priority, x'', document, key, next_at, scheduled_at, fired_through, version,
    runs_made, created_at, updated_at, created_by, paused_at, expires_at
FROM jobs INDEXED BY jobs_due
WHERE state IN (0, 2) AND scheduled_at >= ?1 AND scheduled_at <= ?2 AND (scheduled_at > ?1 OR id > ?4)
    AND hex(substr(id, 16, 1)) IN (SELECT value FROM json_each(?5))
ORDER BY scheduled_at, id LIMIT ?3;

-- name: fire_one_time
-- Delayed jobs become their runs: ?1 their ids, ?2 those of the runs, ?3 the instants they were due.
INSERT INTO runs (
    id, job_id, lane, kind, state, priority, ready_at, scheduled_at, created_at, expires_at, stands_for_job, origin,
    key, created_by, document, payload)
SELECT substr(?2, fired.key * 16 + 1, 16), job.id, job.lane, job.kind, 0, job.priority, max(?4, fired.value),
    fired.value, job.created_at, job.expires_at, 1, 'schedule', job.key, job.created_by, job.document, job.payload
FROM json_each(?3) AS fired
CROSS JOIN jobs AS job ON job.id = substr(?1, fired.key * 16 + 1, 16);

-- name: drop_jobs_by_id
-- The delayed jobs that have fired.
DELETE FROM jobs WHERE id IN (SELECT substr(?1, place.key * 16 + 1, 16) FROM json_each(?2) AS place);

-- name: jobs_to_fire
-- The definitions that a batch of firings is about.
SELECT id, lane, kind, state, priority, payload, document, key, next_at, scheduled_at, fired_through, version,
    runs_made, created_at, updated_at, created_by, paused_at, expires_at
FROM jobs WHERE id IN (SELECT substr(?1, place.key * 16 + 1, 16) FROM json_each(?2) AS place);

-- name: move_on
-- A recurring job waits for its next instant, or is finished.
UPDATE jobs
SET state = ?2, next_at = ?3, scheduled_at = ?4, fired_through = ?5, runs_made = runs_made + ?6
WHERE id = ?1;

-- name: promote
-- Retrying runs whose time has come.
UPDATE runs SET state = 0
WHERE rowid IN (SELECT rowid FROM runs INDEXED BY runs_aside
                WHERE state > 1 AND state = 3 AND ready_at <= ?1 ORDER BY ready_at LIMIT ?2)
RETURNING lane;

-- name: expired
-- What has waited too long to start.
SELECT rowid FROM runs INDEXED BY runs_expiring
WHERE expires_at IS NOT NULL AND attempt = 0 AND expires_at <= ?1 AND state IN (0, 2)
ORDER BY expires_at LIMIT ?2;

-- name: mark_expired
-- Ends it as a skipped occurrence under its own id.
UPDATE runs SET state = 13, reason = 'expired' WHERE rowid IN (SELECT value FROM json_each(?1));

-- name: wake_for_retry
-- When the next retry is due.
SELECT ready_at FROM runs INDEXED BY runs_aside WHERE state > 1 AND state = 3 ORDER BY ready_at LIMIT 1;

-- name: wake_for_expiry
-- When the next run expires.
SELECT expires_at FROM runs INDEXED BY runs_expiring
WHERE expires_at IS NOT NULL AND attempt = 0 AND state IN (0, 2) ORDER BY expires_at LIMIT 1;

-- name: next_wake
-- The sooner of both.
SELECT min(wake) FROM (
    SELECT * FROM (SELECT ready_at AS wake FROM runs INDEXED BY runs_aside
                   WHERE state > 1 AND state = 3 ORDER BY ready_at LIMIT 1)
    UNION ALL
    SELECT * FROM (SELECT expires_at AS wake FROM runs INDEXED BY runs_expiring
                   WHERE expires_at IS NOT NULL AND attempt = 0 AND state IN (0, 2) ORDER BY expires_at LIMIT 1));
