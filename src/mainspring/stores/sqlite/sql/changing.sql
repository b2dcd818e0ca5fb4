-- What users do to jobs and runs after they were submitted.

-- name: job_by_id
-- A definition.
SELECT id, lane, kind, state, priority, payload, document, key, next_at, scheduled_at, fired_through, version,
    runs_made, created_at, updated_at, created_by, paused_at, expires_at
FROM jobs WHERE id = ?1;

-- name: edit_job
-- The definition as it is from now on; who asks has seen the version.
UPDATE jobs
SET lane = ?2, state = ?3, priority = ?4, payload = ?5, document = ?6, key = ?7, expires_at = ?8, next_at = ?9,
    scheduled_at = ?10, fired_through = ?11, version = ?12, updated_at = ?13, paused_at = ?14
WHERE id = ?1;

-- name: drop_job
-- The row leaves `jobs`: it has fired, was cancelled or deleted.
DELETE FROM jobs WHERE id = ?1;

-- name: drop_versions
-- A deleted job has no past definitions either.
DELETE FROM job_versions WHERE job_id = ?1;

-- name: live_by_id
-- A run that has not ended.
SELECT * FROM live_runs WHERE id = ?1;

-- name: past_by_id
-- A run that has ended, or a skipped occurrence; the newest where a repeat left two.
SELECT * FROM past_runs WHERE id = ?1 ORDER BY number DESC LIMIT 1;

-- name: live_standing
-- The live run by which a one-time job is known, if its id is the job's or another.
SELECT * FROM live_runs WHERE id = ?1 AND job_id = ?1 AND stands_for_job = 1
UNION ALL
SELECT * FROM live_runs WHERE job_id = ?1 AND job_id <> id AND stands_for_job = 1;

-- name: past_standing
-- The ended run by which a one-time job is known, if its id is the job's or another.
SELECT * FROM past_runs WHERE id = ?1 AND job_id = ?1 AND stands_for_job = 1
UNION ALL
SELECT * FROM past_runs WHERE job_id = ?1 AND job_id <> id AND stands_for_job = 1
ORDER BY number DESC LIMIT 1;

-- name: unstand_live
-- The job was deleted: its run stays, as a run.
UPDATE runs SET stands_for_job = 0 WHERE rowid = ?1;

-- name: unstand_past
-- The job was deleted: its run stays, as a run.
UPDATE history SET stands_for_job = 0 WHERE number = ?1;

-- name: add_runs
-- A run that a job or a person made; what it needs is in the row.
INSERT INTO runs (
    id, job_id, lane, kind, state, priority, ready_at, scheduled_at, created_at, expires_at, catch_up,
    stands_for_job, replaces, origin, reason, key, created_by, document, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19);

-- name: add_record
-- The record of something that never was a live run.
INSERT INTO history (
    id, job_id, lane, kind, state, priority, ready_at, scheduled_at, created_at, finished_at, count, stands_for_job,
    origin, reason, key, created_by, document, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10, ?11, 'schedule', ?12, ?13, ?14, ?15, ?16);

-- name: drop_dead_letter
-- It was replayed or discarded.
DELETE FROM dead_letters WHERE id = ?1;

-- name: retry_now
-- A retrying run goes on at once.
UPDATE runs SET state = 0, ready_at = ?2 WHERE id = ?1 AND state = 3 RETURNING lane;

-- name: resolve_unknown
-- A person knows how it ended.
UPDATE runs SET state = ?2, reason = coalesce(?3, reason) WHERE id = ?1 AND state = 5 RETURNING rowid, lane;

-- name: waiting_in_lanes
-- What a purge ends: queued, held or retrying.
SELECT rowid, id, state, reason, worker, scheduled_at FROM runs
WHERE lane IN (SELECT value FROM json_each(?1)) AND state IN (0, 2, 3);
