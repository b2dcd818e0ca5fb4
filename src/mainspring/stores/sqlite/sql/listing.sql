-- What readers see. Lists walk an index from the newest id down and stop when they have enough; the filters below
-- stand for `/* runs */` and `/* jobs */` in the statements after them.

-- name: runs_filter
-- What a list of runs may be asked for; queued without anybody who could do it counts as held.
(:lanes IS NULL OR lane IN (SELECT value FROM json_each(:lanes)))
  AND id < :after
  AND (:states IS NULL OR (CASE WHEN state = 0 AND lane IN (SELECT value FROM json_each(:unknown)) THEN 2 ELSE state END)
       IN (SELECT value FROM json_each(:states)))
  AND (:worker IS NULL OR worker = :worker)
  AND (:reason IS NULL
       OR (CASE WHEN state = 0 AND lane IN (SELECT value FROM json_each(:unknown)) THEN 'no_worker' ELSE reason END)
          = :reason)
  AND (:error IS NULL OR instr(error, :error) > 0)
  AND (:start IS NULL OR scheduled_at >= :start)
  AND (:end IS NULL OR scheduled_at < :end)
  AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(document, '$.tags') AS tag WHERE tag.value = :tag));

-- name: jobs_filter
-- What a list of jobs may be asked for, as far as columns tell; the rest is looked at in the row.
(:lanes IS NULL OR lane IN (SELECT value FROM json_each(:lanes)))
  AND (:kind IS NULL OR kind = :kind)
  AND (:key IS NULL OR key = :key)
  AND (:created_by IS NULL OR created_by = :created_by);

-- name: list_live
-- Live runs, newest first.
SELECT * FROM live_runs WHERE /* runs */ ORDER BY id DESC LIMIT :limit;

-- name: list_running
-- The same where only running ones are wanted: as many as there are slots.
SELECT * FROM live_runs
WHERE number IN (SELECT rowid FROM runs INDEXED BY runs_running WHERE worker IS NOT NULL AND (:worker IS NULL OR worker = :worker))
  AND /* runs */ ORDER BY id DESC LIMIT :limit;

-- name: list_aside
-- The same where only held, retrying, parked or unknown ones are wanted.
SELECT * FROM live_runs
WHERE number IN (SELECT rowid FROM runs INDEXED BY runs_aside WHERE state > 1 AND state IN (SELECT value FROM json_each(:states)))
  AND /* runs */ ORDER BY id DESC LIMIT :limit;

-- name: list_unknown
-- Queued runs that show as held, since nobody ever registered their task.
SELECT * FROM live_runs
WHERE number IN (SELECT rowid FROM runs INDEXED BY runs_claim
                 WHERE state = 0 AND lane IN (SELECT value FROM json_each(:unknown)))
  AND /* runs */ ORDER BY id DESC LIMIT :limit;

-- name: list_past
-- Ended runs and skipped occurrences, newest first.
SELECT * FROM past_runs WHERE /* runs */ ORDER BY id DESC LIMIT :limit;

-- name: list_past_of_state
-- The same of one state that is not completed, which has an index of its own.
SELECT * FROM past_runs
WHERE number IN (SELECT number FROM history INDEXED BY history_not_completed
                 WHERE state <> 10 AND state = :state AND id < :after
                 ORDER BY id DESC LIMIT CASE WHEN :plain THEN :limit ELSE -1 END)
  AND /* runs */ ORDER BY id DESC LIMIT :limit;

-- name: list_live_of_job
-- Live runs of one job.
SELECT * FROM live_runs WHERE job_id = :job AND job_id <> id AND /* runs */
UNION ALL
SELECT * FROM live_runs WHERE id = :job AND job_id = :job AND /* runs */
ORDER BY id DESC LIMIT :limit;

-- name: list_past_of_job
-- Ended runs and skipped occurrences of one job.
SELECT * FROM past_runs WHERE job_id = :job AND job_id <> id AND /* runs */
UNION ALL
SELECT * FROM past_runs WHERE id = :job AND job_id = :job AND /* runs */
ORDER BY id DESC LIMIT :limit;

-- name: list_dead_letters
-- Failed runs that wait for a person, newest first.
SELECT * FROM past_runs
WHERE id IN (SELECT id FROM dead_letters) AND state = 11 AND (:job IS NULL OR job_id = :job) AND /* runs */ ORDER BY id DESC LIMIT :limit;

-- name: newest_live_of_job
-- The newest live run of a job, whatever its id.
SELECT * FROM (
    SELECT * FROM live_runs WHERE job_id = ?1 AND job_id <> id ORDER BY id DESC LIMIT 1)
UNION ALL
SELECT * FROM (SELECT * FROM live_runs WHERE id = ?1 AND job_id = ?1 LIMIT 1)
ORDER BY id DESC LIMIT 1;

-- name: newest_past_of_job
-- The newest ended run of a job, whatever its id.
SELECT * FROM (
    SELECT * FROM past_runs WHERE job_id = ?1 AND job_id <> id ORDER BY id DESC LIMIT 1)
UNION ALL
SELECT * FROM (SELECT * FROM past_runs WHERE id = ?1 AND job_id = ?1 LIMIT 1)
ORDER BY id DESC LIMIT 1;

-- name: job_ids
-- Ids of definitions, newest first.
SELECT id FROM jobs
WHERE id < :after AND (:job_states IS NULL OR state IN (SELECT value FROM json_each(:job_states)))
  AND /* jobs */ ORDER BY id DESC;

-- name: live_job_ids
-- One-time jobs that are live runs with the id of the job.
SELECT id FROM runs
WHERE job_id = id AND stands_for_job = 1 AND id < :after AND /* jobs */ ORDER BY id DESC;

-- name: live_fired_ids
-- One-time jobs that are live runs with an id of their own.
SELECT job_id FROM runs
WHERE job_id <> id AND stands_for_job = 1 AND job_id < :after AND /* jobs */ ORDER BY job_id DESC;

-- name: running_job_ids
-- One-time jobs that run now.
SELECT job_id FROM runs INDEXED BY runs_running
WHERE worker IS NOT NULL AND kind < 2 AND job_id < :after AND /* jobs */ ORDER BY job_id DESC;

-- name: aside_job_ids
-- One-time jobs whose run is held, retrying, parked or unknown.
SELECT job_id FROM runs INDEXED BY runs_aside
WHERE state > 1 AND kind < 2 AND job_id < :after AND /* jobs */ ORDER BY job_id DESC;

-- name: unknown_job_ids
-- One-time jobs whose task nobody ever registered.
SELECT job_id FROM runs INDEXED BY runs_claim
WHERE state = 0 AND lane IN (SELECT value FROM json_each(:unknown)) AND kind < 2 AND job_id < :after AND /* jobs */
ORDER BY job_id DESC;

-- name: past_completed_ids
-- One-time jobs that completed and have the id of their run; :floor bounds how far back is looked.
SELECT id FROM history INDEXED BY history_id
WHERE job_id = id AND stands_for_job = 1 AND state = 10 AND id < :after AND id >= :floor
  AND (:since IS NULL OR finished_at >= :since) AND /* jobs */ ORDER BY id DESC;

-- name: past_slow_ids
-- Those among them that took more than a day from acceptance to end, and so lie below the floor.
SELECT id FROM history INDEXED BY history_slow
WHERE finished_at - created_at > 86400000000 AND id < :floor
  AND job_id = id AND stands_for_job = 1 AND state = 10 AND id < :after
  AND (:since IS NULL OR finished_at >= :since) AND /* jobs */ ORDER BY id DESC;

-- name: past_fired_ids
-- One-time jobs that have ended in a run with an id of its own.
SELECT job_id FROM history INDEXED BY history_of_job
WHERE job_id <> id AND stands_for_job = 1 AND job_id < :after
  AND (:since IS NULL OR state <> 10 OR finished_at >= :since) AND /* jobs */ ORDER BY job_id DESC;

-- name: past_other_ids
-- One-time jobs that ended otherwise than completed and have the id of their run.
SELECT id FROM history INDEXED BY history_not_completed
WHERE state <> 10 AND state = :state AND job_id = id AND stands_for_job = 1 AND id < :after
  AND /* jobs */ ORDER BY id DESC;

-- name: beside_live_ids
-- One-time jobs that a live run beside the first one belongs to.
SELECT job_id FROM runs INDEXED BY runs_beside
WHERE stands_for_job = 0 AND kind < 2 AND job_id < :after AND /* jobs */ ORDER BY job_id DESC;

-- name: beside_past_ids
-- One-time jobs that an ended run beside the first one belongs to.
SELECT job_id FROM history INDEXED BY history_beside
WHERE stands_for_job = 0 AND kind < 2 AND job_id < :after AND /* jobs */ ORDER BY job_id DESC;
