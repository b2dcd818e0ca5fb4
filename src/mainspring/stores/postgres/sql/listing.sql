-- What readers see. Blocks named where_… are conditions: the list takes those that were asked for.

-- name: runs_by_id
-- Runs by id, live before ended; partitions that ended before the oldest id was made are not looked at.
SELECT r.* FROM mainspring.live_runs r WHERE r.id = ANY ($1::uuid[])
UNION ALL
SELECT r.* FROM mainspring.past_runs r WHERE r.id = ANY ($1::uuid[]) AND r.finished_at >= $2
UNION ALL
SELECT r.* FROM mainspring.dead_runs r WHERE r.id = ANY ($1::uuid[]) AND r.finished_at < $2

-- name: runs_by_id_anywhere
-- The same over all of history: for ids whose own time lies after their end, or whose partition is gone.
SELECT r.* FROM mainspring.past_runs r WHERE r.id = ANY ($1::uuid[])
UNION ALL
SELECT r.* FROM mainspring.dead_runs r WHERE r.id = ANY ($1::uuid[])

-- name: live_by_id
-- Live runs by id.
SELECT r.* FROM mainspring.live_runs r WHERE r.id = ANY ($1::uuid[])

-- name: jobs_by_id
-- Rows of jobs by id.
SELECT v.*
  FROM unnest($1::uuid[]) AS k (id)
  JOIN mainspring.future_jobs v ON (v.id = k.id) AND v.shard = get_byte(uuid_send(k.id), 15)::smallint

-- name: runs_of_jobs
-- Of each job the newest run, live or ended, and the one by which a one-time job is known.
SELECT n.*
  FROM unnest($1::uuid[]) AS k (id)
 CROSS JOIN LATERAL (
    (SELECT r.* FROM mainspring.live_runs r WHERE (r.id = k.id) AND r.job_id = k.id)
    UNION ALL
    (SELECT r.* FROM mainspring.live_runs r WHERE (r.job_id = k.id) AND r.job_id <> r.id ORDER BY r.id DESC LIMIT 1)
    UNION ALL
    (SELECT r.* FROM mainspring.live_runs r
      WHERE (r.job_id = k.id) AND r.job_id <> r.id AND r.stands_for_job LIMIT 1)
    UNION ALL
    (SELECT r.* FROM mainspring.past_runs r WHERE (r.id = k.id) AND (r.job_id = k.id) AND r.finished_at >= $2)
    UNION ALL
    (SELECT r.* FROM mainspring.past_runs r
      WHERE (r.job_id = k.id) AND r.job_id <> r.id AND r.finished_at >= $2 ORDER BY r.id DESC LIMIT 1)
    UNION ALL
    (SELECT r.* FROM mainspring.past_runs r
      WHERE (r.job_id = k.id) AND r.job_id <> r.id AND r.finished_at >= $2 AND r.stands_for_job LIMIT 1)) AS n

-- name: list_runs
-- Newest first, live and ended.
(SELECT r.* FROM mainspring.live_runs r WHERE {where} ORDER BY r.id DESC LIMIT {limit})
UNION ALL
(SELECT r.* FROM mainspring.past_runs r WHERE {where} ORDER BY r.id DESC LIMIT {limit})
ORDER BY id DESC LIMIT {limit}

-- name: list_dead_letters
-- Newest first.
SELECT r.* FROM mainspring.dead_runs r WHERE {where} ORDER BY r.id DESC LIMIT {limit}

-- name: list_job_ids
-- Newest first: rows of jobs, and one-time jobs by the runs that stand for them.
SELECT DISTINCT x.job_id
  FROM (
    (SELECT r.id AS job_id FROM mainspring.future_jobs r WHERE {jobs} ORDER BY r.id DESC LIMIT {limit})
    UNION ALL
    (SELECT r.id FROM mainspring.live_runs r
      WHERE r.job_id = r.id AND r.stands_for_job AND {own} ORDER BY r.id DESC LIMIT {limit})
    UNION ALL
    (SELECT r.job_id FROM mainspring.live_runs r
      WHERE r.job_id <> r.id AND r.stands_for_job AND {others} ORDER BY r.job_id DESC LIMIT {limit})
    UNION ALL
    (SELECT r.id FROM mainspring.past_runs r
      WHERE r.job_id = r.id AND r.stands_for_job AND {own} AND {recent} ORDER BY r.id DESC LIMIT {limit})
    UNION ALL
    (SELECT r.job_id FROM mainspring.past_runs r
      WHERE r.job_id <> r.id AND r.stands_for_job AND {others} AND {recent} ORDER BY r.job_id DESC LIMIT {limit})) AS x
 ORDER BY x.job_id DESC LIMIT {limit}

-- name: retried_jobs
-- One-time jobs with later runs in these states: their status is not that of the run that stands for them.
SELECT DISTINCT x.job_id
  FROM (
    (SELECT r.job_id FROM mainspring.live_runs r
      WHERE r.job_id <> r.id AND NOT r.stands_for_job AND r.kind <> 2 AND {states} LIMIT {limit})
    UNION ALL
    (SELECT r.job_id FROM mainspring.past_runs r
      WHERE r.job_id <> r.id AND NOT r.stands_for_job AND r.kind <> 2 AND {states}
      ORDER BY r.finished_at DESC LIMIT {limit})) AS x

-- name: where_namespace
-- Of this namespace.
r.namespace = {value}

-- name: where_task
-- Of this task.
r.task = {value}

-- name: where_queue
-- In this queue.
r.queue = {value}

-- name: where_region
-- Of this region.
r.region = {value}

-- name: where_job
-- Runs of this job: a one-time job's own has its id, the others are found by the index of jobs with several runs.
((r.id = {value} AND r.job_id = {value}) OR (r.job_id = {value} AND r.job_id <> r.id))

-- name: where_worker
-- Carried out by this worker.
r.worker = {value}

-- name: where_reason
-- With this reason.
r.reason = {value}

-- name: where_error
-- With this text in its error.
strpos(coalesce(r.error, ''), {value}) > 0

-- name: where_tag
-- With this tag in its document.
r.document IS NOT NULL AND (r.document::jsonb -> 'tags') ? {value}

-- name: where_start
-- Scheduled at this instant or later.
r.scheduled_at >= {value}

-- name: where_end
-- Scheduled before this instant.
r.scheduled_at < {value}

-- name: where_run_before
-- Runs older than this id.
r.id < {value}

-- name: where_job_before
-- Jobs older than this id, by the run's job.
r.job_id < {value}

-- name: where_kind
-- Of this kind.
r.kind = {value}

-- name: where_key
-- With this key.
r.key = {value}

-- name: where_created_by
-- Submitted by this caller.
r.created_by = {value}

-- name: where_created_after
-- Submitted at this instant or later.
r.created_at >= {value}

-- name: where_created_before
-- Submitted before this instant.
r.created_at < {value}

-- name: where_next_before
-- Due before this instant.
r.next_at < {value}

-- name: where_prefix
-- With a task, a key or a name that begins so.
(starts_with(r.task, {value}) OR starts_with(coalesce(r.key, ''), {value})
 OR starts_with(coalesce(r.document::jsonb ->> 'name', ''), {value}))

-- name: where_payload
-- With this text in a field of the payload.
convert_from(r.payload, 'UTF8')::jsonb ->> {name} = {value}

-- name: where_states
-- In one of these states; written out, so that the index of what did not complete is found.
r.state IN ({states})

-- name: where_not_completed
-- What the index of what did not complete holds.
r.state <> 10

-- name: where_later_runs
-- Or a job that was retried.
r.job_id = ANY ({value}::uuid[])

-- name: where_recent
-- Completed ones only if they ended lately.
(r.state <> 10 OR r.finished_at >= {value})
