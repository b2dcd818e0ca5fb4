-- Claims and ends: the hot path. Batches arrive as one BLOB of ids and one JSON array, so that each is one step.

-- name: add_lane
-- A lane that was not seen before gets its number.
INSERT INTO lanes (namespace, queue, task, region, placement) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING;

-- name: all_lanes
-- What the interned numbers mean.
SELECT id, namespace, queue, task, region, placement FROM lanes;

-- name: newest_lane
-- Whether lanes were added since they were last read.
SELECT coalesce(max(id), 0) FROM lanes;

-- name: is_known_task
-- Whether a worker ever registered it.
SELECT 1 FROM tasks WHERE namespace = ?1 AND name = ?2;

-- name: may_claim
-- A worker that is unknown or was declared lost gets nothing.
SELECT 1 FROM workers WHERE id = ?1 AND lost_at IS NULL;

-- name: paused_queues
-- What claims pass by.
SELECT name FROM queues WHERE namespace = ?1 AND paused = 1;

-- name: lanes_with_work
-- Which of these lanes have anything queued: a look at the first entry of each.
SELECT lane.value FROM json_each(?1) AS lane
WHERE EXISTS (SELECT 1 FROM runs WHERE runs.lane = lane.value AND runs.state = 0);

-- name: claim
-- Takes the head of the only lane that has work.
UPDATE runs
SET state = 1, worker = ?1, fence = fence + 1, attempt = attempt + 1, started_at = ?2,
    lateness = CASE WHEN attempt = 0 THEN max(0, ?2 - max(scheduled_at, created_at)) ELSE lateness END
WHERE rowid IN (
    SELECT rowid FROM runs
    WHERE lane = ?3 AND state = 0 AND ready_at <= ?2 AND deaths < ?4
      AND (expires_at IS NULL OR expires_at > ?2 OR attempt > 0)
    ORDER BY priority DESC, ready_at, id
    LIMIT ?5)
RETURNING id, job_id, fence, attempt, spent, deaths, lane, payload, document, scheduled_at, -priority, catch_up,
    attempts, lateness, created_at, ready_at;

-- name: heads_of_lane
-- The head of one of several lanes, to be merged with those of the others.
SELECT -priority, ready_at, id, rowid, length(payload) FROM runs
WHERE lane = ?1 AND state = 0 AND ready_at <= ?2 AND deaths < ?3
  AND (expires_at IS NULL OR expires_at > ?2 OR attempt > 0)
ORDER BY priority DESC, ready_at, id
LIMIT ?4;

-- name: claim_chosen
-- Takes the runs that the merge chose.
UPDATE runs
SET state = 1, worker = ?1, fence = fence + 1, attempt = attempt + 1, started_at = ?2,
    lateness = CASE WHEN attempt = 0 THEN max(0, ?2 - max(scheduled_at, created_at)) ELSE lateness END
WHERE rowid IN (SELECT value FROM json_each(?3))
RETURNING id, job_id, fence, attempt, spent, deaths, lane, payload, document, scheduled_at, -priority, catch_up,
    attempts, lateness, created_at, ready_at;

-- name: bury_completed
-- Completed attempts that leave nothing behind: no key, no overlap, no cancel. Elements are `fence` or `fence:result`.
INSERT INTO history (
    id, job_id, lane, kind, state, priority, ready_at, scheduled_at, created_at, finished_at, fence, attempt, worker,
    started_at, lateness, expires_at, catch_up, stands_for_job, replaces, origin, reason, created_by, progress,
    document, payload, result)
SELECT
    run.id, run.job_id, run.lane, run.kind, 10, run.priority, run.ready_at, run.scheduled_at, run.created_at, ?4,
    run.fence, run.attempt, run.worker, run.started_at, run.lateness, run.expires_at, run.catch_up,
    run.stands_for_job, run.replaces, run.origin, run.reason, run.created_by, run.progress, run.document, run.payload,
    CASE WHEN instr(ending.value, ':') > 0
         THEN CAST(substr(ending.value, instr(ending.value, ':') + 1) AS BLOB) ELSE ?5 END
FROM json_each(?2) AS ending
CROSS JOIN runs AS run ON run.id = substr(?1, ending.key * 16 + 1, 16)
WHERE run.fence = CAST(ending.value AS INTEGER) AND run.state = 1 AND run.worker = ?3
  AND run.cancel_requested_at IS NULL AND run.key IS NULL AND run.kind <> 2 AND run.attempts IS NULL;

-- name: drop_runs_by_id
-- The rows that were copied to history.
DELETE FROM runs WHERE id IN (SELECT substr(?1, place.key * 16 + 1, 16) FROM json_each(?2) AS place);

-- name: endings_state
-- What guards the end of each attempt, in the order of the endings.
SELECT run.rowid, run.state, run.fence, run.worker, run.cancel_requested_at, run.attempt
FROM json_each(?2) AS place
LEFT JOIN runs AS run ON run.id = substr(?1, place.key * 16 + 1, 16)
ORDER BY place.key;

-- name: end_attempt
-- What an ending says about its run. It keeps worker and start only where the run has ended with it.
UPDATE runs
SET state = ?2, result = ?3, error = ?4, spent = ?5, deaths = ?6, attempts = coalesce(?7, attempts),
    reason = coalesce(?8, reason), attempt = attempt - ?9, lateness = CASE WHEN attempt = ?9 THEN NULL ELSE lateness END,
    ready_at = coalesce(?10, ready_at),
    worker = CASE WHEN ?2 >= 10 THEN worker END, started_at = CASE WHEN ?2 >= 10 THEN started_at END
WHERE rowid = ?1;

-- name: bury
-- Runs whose state says that they have ended move to history.
INSERT INTO history (
    id, job_id, lane, kind, state, priority, ready_at, scheduled_at, created_at, finished_at, fence, attempt, spent,
    deaths, worker, started_at, lateness, expires_at, cancel_requested_at, catch_up, stands_for_job, replaces, origin,
    reason, key, created_by, progress, document, payload, result, error, attempts)
SELECT
    id, job_id, lane, kind, state, priority, ready_at, scheduled_at, created_at, ?2, fence, attempt, spent,
    deaths, worker, started_at, lateness, expires_at, cancel_requested_at, catch_up, stands_for_job, replaces, origin,
    reason, key, created_by, progress, document, payload, result, error, attempts
FROM runs WHERE rowid IN (SELECT value FROM json_each(?1));

-- name: add_dead_letters
-- Failed runs wait for a person.
INSERT OR REPLACE INTO dead_letters (id, failed_at)
SELECT id, ?2 FROM runs WHERE state = 11 AND rowid IN (SELECT value FROM json_each(?1));

-- name: free_keys_of_runs
-- A one-time job that has ended holds its key no longer.
DELETE FROM uniques WHERE (namespace, kind, key) IN (
    SELECT lanes.namespace, 'key', runs.key FROM runs JOIN lanes ON lanes.id = runs.lane
    WHERE runs.key IS NOT NULL AND runs.stands_for_job = 1 AND runs.rowid IN (SELECT value FROM json_each(?1))
      AND uniques.job_id = runs.job_id);

-- name: jobs_of_ended
-- Whose other runs may wait for these to end.
SELECT DISTINCT job_id FROM runs
WHERE rowid IN (SELECT value FROM json_each(?1))
  AND EXISTS (SELECT 1 FROM runs AS other
              WHERE other.job_id = runs.job_id AND other.job_id <> other.id AND other.state = 2);

-- name: drop_runs
-- The rows that were copied to history.
DELETE FROM runs WHERE rowid IN (SELECT value FROM json_each(?1));

-- name: live_of_job
-- The live runs of a job: the one with its id, and the others.
SELECT rowid, id, state, reason, worker, scheduled_at FROM runs WHERE id = ?1 AND job_id = ?1
UNION ALL
SELECT rowid, id, state, reason, worker, scheduled_at FROM runs WHERE job_id = ?1 AND job_id <> id;

-- name: open_held
-- A run that was held for overlap may start.
UPDATE runs SET state = 0, reason = NULL WHERE rowid = ?1 RETURNING lane;

-- name: set_state
-- Takes an edge of the table of states that touches nothing else.
UPDATE runs SET state = ?2 WHERE rowid = ?1;

-- name: ask_cancel
-- A running run is asked to stop; the first request counts.
UPDATE runs SET cancel_requested_at = coalesce(cancel_requested_at, ?2) WHERE rowid = ?1;

-- name: set_progress
-- What a handler says about itself, while it is the one that runs.
UPDATE runs SET progress = ?4 WHERE id = ?2 AND fence = ?3 AND worker = ?1 AND state = 1;

-- name: lane_of_run
-- Where a run stands that becomes ready again.
SELECT lane FROM runs WHERE rowid = ?1;
