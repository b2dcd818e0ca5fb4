-- Firing: what is due becomes runs, and what waits is let on or ends.

-- name: due_jobs
-- Shard by shard from its index, soonest first.
SELECT v.*
  FROM (
    SELECT d.id, d.shard, d.scheduled_at
      FROM unnest($1::smallint[]) AS s (shard)
     CROSS JOIN LATERAL (
            SELECT j.id, j.shard, j.scheduled_at
              FROM mainspring.jobs j
             WHERE j.shard = s.shard AND j.state IN (0, 2) AND j.scheduled_at <= $2
             ORDER BY j.scheduled_at
             LIMIT $3) AS d
     ORDER BY d.scheduled_at, d.id
     LIMIT $3) AS k
  JOIN mainspring.future_jobs v ON (v.id = k.id) AND v.shard = k.shard
 ORDER BY k.scheduled_at, k.id

-- name: coming_jobs
-- The same from after an instant and an id on, without what only a run needs.
SELECT k.id, l.namespace, l.queue, l.task, l.region, l.placement, k.kind, k.state, k.priority, ''::bytea AS payload,
       k.document, k.key, k.next_at, k.scheduled_at, k.fired_through, k.version, k.runs_made, k.created_at,
       k.updated_at, k.created_by, k.paused_at, k.expires_at
  FROM (
    SELECT d.*
      FROM unnest($1::smallint[]) AS s (shard)
     CROSS JOIN LATERAL (
            SELECT j.id, j.lane, j.kind, j.state, j.priority, j.document, j.key, j.next_at, j.scheduled_at,
                   j.fired_through, j.version, j.runs_made, j.created_at, j.updated_at, j.created_by, j.paused_at,
                   j.expires_at
              FROM mainspring.jobs j
             WHERE j.shard = s.shard AND j.state IN (0, 2) AND j.scheduled_at >= $2 AND j.scheduled_at <= $4
               AND (j.scheduled_at > $2 OR j.id > $3)
             ORDER BY j.scheduled_at, j.id
             LIMIT $5) AS d
     ORDER BY d.scheduled_at, d.id
     LIMIT $5) AS k
  JOIN mainspring.lanes l ON l.id = k.lane
 ORDER BY k.scheduled_at, k.id

-- name: lock_due
-- Whoever adds a run of a job holds its row: once these are held, what is live is seen whole.
SELECT count(*)
  FROM (
    SELECT j.id
      FROM unnest($1::uuid[]) AS k (id)
      JOIN mainspring.jobs j ON (j.id = k.id) AND j.shard = get_byte(uuid_send(k.id), 15)::smallint
     ORDER BY j.id
       FOR UPDATE OF j) AS held

-- name: fire_recurring
-- Jobs none of whose runs are live move on, and their runs are queued, in one statement; their rows are held.
WITH moved AS (
    UPDATE mainspring.jobs j
       SET next_at = k.next_at, scheduled_at = k.next_scheduled_at, fired_through = k.fired_through,
           runs_made = j.runs_made + 1, state = CASE WHEN k.next_at IS NULL THEN 4 ELSE j.state END
      FROM unnest($1::uuid[], $2::integer[], $3::uuid[], $4::bigint[], $5::bigint[], $6::boolean[], $7::bigint[],
                  $8::bigint[], $9::bigint[])
        AS k (id, version, run_id, nominal, due_at, catch_up, fired_through, next_at, next_scheduled_at)
     WHERE (j.id = k.id) AND j.shard = get_byte(uuid_send(k.id), 15)::smallint
       AND j.version = k.version AND j.state = 2 AND j.kind = 2 AND j.fired_through < k.nominal
       AND (k.next_at IS NOT NULL OR j.key IS NULL)
       AND (j.expires_at IS NOT NULL OR j.document IS NULL OR strpos(j.document, '"expires_in"') = 0)
       AND NOT EXISTS (SELECT FROM mainspring.runs r WHERE r.job_id = j.id AND r.job_id <> r.id)
       AND NOT EXISTS (SELECT FROM mainspring.runs r WHERE r.id = j.id)
    RETURNING k.run_id, j.id, k.due_at, j.created_at, j.expires_at, j.lane, j.kind, j.priority, k.catch_up, j.payload,
              j.document, j.created_by
)
INSERT INTO mainspring.runs (id, job_id, ready_at, scheduled_at, created_at, expires_at, lane, kind, state, priority,
                             catch_up, stands_for_job, payload, origin, document, created_by)
SELECT m.run_id, m.id, greatest(c.now, m.due_at), m.due_at, m.created_at, m.expires_at, m.lane, m.kind, 0,
       m.priority, m.catch_up, false, m.payload, 'schedule', m.document, m.created_by
  FROM moved m, (SELECT mainspring.instant($10) AS now) AS c
RETURNING id, job_id, lane

-- name: lock_jobs
-- The rows of jobs as they are once nobody else holds them, in the order of ids.
SELECT j.id, l.namespace, l.queue, l.task, l.region, l.placement, j.kind, j.state, j.priority, j.payload,
       j.document, j.key, j.next_at, j.scheduled_at, j.fired_through, j.version, j.runs_made, j.created_at,
       j.updated_at, j.created_by, j.paused_at, j.expires_at, j.shard, j.lane
  FROM unnest($1::uuid[]) AS k (id)
  JOIN mainspring.jobs j ON (j.id = k.id) AND j.shard = get_byte(uuid_send(k.id), 15)::smallint
  JOIN mainspring.lanes l ON l.id = j.lane
 ORDER BY j.id
   FOR UPDATE OF j

-- name: fire_delayed
-- A delayed job moves from jobs to runs in one statement; of several schedulers the one that deletes the row fires it.
WITH fired AS (
    DELETE FROM mainspring.jobs j
    USING unnest($1::uuid[], $2::integer[], $3::uuid[], $4::bigint[], $5::boolean[])
       AS k (id, version, run_id, due_at, catch_up)
    WHERE (j.id = k.id) AND j.shard = get_byte(uuid_send(k.id), 15)::smallint
      AND j.version = k.version AND j.state = 0 AND j.kind = 1
      AND (j.expires_at IS NOT NULL OR j.document IS NULL OR strpos(j.document, '"expires_in"') = 0)
    RETURNING k.run_id, j.id, k.due_at, j.created_at, j.expires_at, j.lane, j.kind, j.priority, k.catch_up, j.payload,
              j.document, j.key, j.created_by
)
INSERT INTO mainspring.runs (id, job_id, ready_at, scheduled_at, created_at, expires_at, lane, kind, state, priority,
                             catch_up, stands_for_job, payload, origin, document, key, created_by)
SELECT f.run_id, f.id, greatest(c.now, f.due_at), f.due_at, f.created_at, f.expires_at, f.lane, f.kind, 0,
       f.priority, f.catch_up, true, f.payload, 'schedule', f.document, f.key, f.created_by
  FROM fired f, (SELECT mainspring.instant($6) AS now) AS c
RETURNING id, job_id, lane

-- name: live_runs_of_jobs
-- What overlap is decided by, of jobs whose rows we hold.
SELECT r.job_id, r.id, r.state, r.reason, r.worker
  FROM mainspring.runs r
 WHERE (r.job_id = ANY ($1::uuid[]) AND r.job_id <> r.id) OR r.id = ANY ($1::uuid[])

-- name: move_jobs_on
-- What firing changes in a recurring job's row; the version stays.
UPDATE mainspring.jobs j
   SET state = k.state, next_at = k.next_at, scheduled_at = k.scheduled_at, fired_through = k.fired_through,
       runs_made = j.runs_made + k.runs
  FROM unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[])
    AS k (id, state, next_at, scheduled_at, fired_through, runs)
 WHERE (j.id = k.id) AND j.shard = get_byte(uuid_send(k.id), 15)::smallint

-- name: drop_jobs
-- Rows of jobs that have fired, were cancelled or deleted.
DELETE FROM mainspring.jobs j
 USING unnest($1::uuid[]) AS k (id)
 WHERE (j.id = k.id) AND j.shard = get_byte(uuid_send(k.id), 15)::smallint

-- name: promote
-- Retrying runs whose time has come, in their order; whoever holds one is left alone.
WITH due AS MATERIALIZED (
    SELECT r.ctid AS place
      FROM mainspring.runs r
     WHERE r.state = 3 AND r.ready_at <= (SELECT mainspring.instant($1))
     ORDER BY r.ready_at
     LIMIT $2
       FOR UPDATE SKIP LOCKED
)
UPDATE mainspring.runs r SET state = 0
  FROM due d
 WHERE r.ctid = d.place AND r.state + 0 = 3
RETURNING r.lane

-- name: expired
-- Held and queued runs that have waited too long; they are looked at again once they are locked.
SELECT r.id
  FROM mainspring.runs r
 WHERE r.expires_at <= $1 AND r.expires_at IS NOT NULL AND r.attempt = 0 AND r.state IN (0, 2)
 ORDER BY r.expires_at
 LIMIT $2

-- name: next_wake
-- The soonest retry and the soonest expiry.
SELECT least(
    (SELECT min(r.ready_at) FROM mainspring.runs r WHERE r.state = 3),
    (SELECT min(r.expires_at) FROM mainspring.runs r
      WHERE r.expires_at IS NOT NULL AND r.attempt = 0 AND r.state IN (0, 2)))
