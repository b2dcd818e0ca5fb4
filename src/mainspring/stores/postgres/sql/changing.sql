-- What users do to jobs and runs after they were submitted.

-- name: edit_job
-- A locked row of jobs as the edit leaves it.
UPDATE mainspring.jobs j
   SET state = $2, lane = $3, priority = $4, payload = $5, document = $6, key = $7, expires_at = $8, next_at = $9,
       scheduled_at = $10, fired_through = $11, version = $12, updated_at = $13, paused_at = $14
 WHERE j.id = $1 AND j.shard = get_byte(uuid_send($1), 15)::smallint

-- name: cancel_jobs
-- Recurring jobs keep their row.
UPDATE mainspring.jobs j
   SET state = 5, next_at = NULL, scheduled_at = NULL, version = j.version + 1, updated_at = $2, paused_at = NULL
  FROM unnest($1::uuid[]) AS k (id)
 WHERE (j.id = k.id) AND j.shard = get_byte(uuid_send(k.id), 15)::smallint

-- name: jobs_of_runs
-- Whose runs these ids are, live or ended; unlocked, to know what to lock.
SELECT r.id, r.job_id FROM mainspring.runs r WHERE r.id = ANY ($1::uuid[])
UNION
SELECT h.id, h.job_id FROM mainspring.history h WHERE h.id = ANY ($1::uuid[]) AND h.finished_at >= $2
UNION
SELECT d.id, d.job_id FROM mainspring.dead_letters d WHERE d.id = ANY ($1::uuid[])

-- name: lock_runs_of
-- Live runs by their own id or by their job's, as they are once nobody else holds them.
SELECT r.id, r.job_id, r.fence, r.worker, r.state, r.cancel_requested_at, r.kind, r.lane, r.attempt
  FROM mainspring.runs r
 WHERE r.id = ANY ($1::uuid[]) OR (r.job_id = ANY ($1::uuid[]) AND r.job_id <> r.id)
 ORDER BY r.id
   FOR UPDATE OF r

-- name: ask_cancel
-- Running and parked runs are asked to stop; an earlier request stands.
UPDATE mainspring.runs SET cancel_requested_at = coalesce(cancel_requested_at, $2) WHERE id = ANY ($1::uuid[])

-- name: standing
-- The runs by which one-time jobs are known, live or ended.
SELECT r.job_id, r.id, true AS live
  FROM mainspring.runs r WHERE r.id = ANY ($1::uuid[]) AND r.job_id = r.id AND r.stands_for_job
UNION ALL
SELECT r.job_id, r.id, true
  FROM mainspring.runs r WHERE r.job_id = ANY ($1::uuid[]) AND r.job_id <> r.id AND r.stands_for_job
UNION ALL
SELECT h.job_id, h.id, false
  FROM mainspring.history h
 WHERE h.id = ANY ($1::uuid[]) AND h.job_id = h.id AND h.stands_for_job AND h.finished_at >= $2
UNION ALL
SELECT h.job_id, h.id, false
  FROM mainspring.history h
 WHERE h.job_id = ANY ($1::uuid[]) AND h.job_id <> h.id AND h.stands_for_job AND h.finished_at >= $2

-- name: forget_live
-- Deleted jobs: their runs stay and stand for nothing any more.
UPDATE mainspring.runs r SET stands_for_job = false
 WHERE r.id = ANY ($1::uuid[]) OR (r.job_id = ANY ($1::uuid[]) AND r.job_id <> r.id)

-- name: forget_past_own
-- The same in history, for runs that have their job's id.
UPDATE mainspring.history h SET stands_for_job = false
 WHERE h.id = ANY ($1::uuid[]) AND h.job_id = h.id AND h.finished_at >= $2 AND h.stands_for_job

-- name: forget_past_others
-- The same in history, for runs with an id of their own.
UPDATE mainspring.history h SET stands_for_job = false
 WHERE h.job_id = ANY ($1::uuid[]) AND h.job_id <> h.id AND h.finished_at >= $2 AND h.stands_for_job

-- name: free_keys_of_jobs
-- The keys of deleted jobs.
DELETE FROM mainspring.uniques u WHERE u.kind = 'key' AND (u.namespace, u.key, u.job_id) IN (
    SELECT l.namespace, r.key, r.job_id FROM mainspring.runs r JOIN mainspring.lanes l ON l.id = r.lane
     WHERE r.key IS NOT NULL AND (r.id = ANY ($1::uuid[]) OR (r.job_id = ANY ($1::uuid[]) AND r.job_id <> r.id)))

-- name: taken_run_ids
-- Which of these ids are runs already.
SELECT r.id FROM mainspring.runs r WHERE r.id = ANY ($1::uuid[])
UNION
SELECT h.id FROM mainspring.history h WHERE h.id = ANY ($1::uuid[]) AND h.finished_at >= $2
UNION
SELECT d.id FROM mainspring.dead_letters d WHERE d.id = ANY ($1::uuid[])

-- name: redeem
-- Dead letters that are replayed: who deletes the row makes the new run.
DELETE FROM mainspring.dead_letters WHERE id = ANY ($1::uuid[]) RETURNING id

-- name: discard
-- Dead letters that nobody wants.
DELETE FROM mainspring.dead_letters WHERE id = ANY ($1::uuid[]) RETURNING id

-- name: retry_now
-- A retrying run becomes queued at once.
UPDATE mainspring.runs SET state = 0, ready_at = mainspring.instant($2)
 WHERE id = $1 AND state = 3
RETURNING lane

-- name: requeue_unknown
-- An unknown run goes back to its place.
UPDATE mainspring.runs SET state = 0, reason = coalesce($2, reason) WHERE id = $1 AND state = 5 RETURNING lane

-- name: runs_in_queue
-- What waits in a queue.
SELECT r.id
  FROM mainspring.runs r
 WHERE r.lane = ANY ($1::integer[]) AND r.state IN (0, 2, 3)
 ORDER BY r.id
 LIMIT $2
