-- The small tables: queues, idempotency keys, logs, numbers.

-- name: set_paused
-- A queue's row, made where there is none.
INSERT INTO mainspring.queues (namespace, name, paused) VALUES ($1, $2, $3)
    ON CONFLICT (namespace, name) DO UPDATE SET paused = $3

-- name: set_limits
-- A queue's limits, kept as they were given.
INSERT INTO mainspring.queues (namespace, name, limits) VALUES ($1, $2, $3)
    ON CONFLICT (namespace, name) DO UPDATE SET limits = $3

-- name: queues
-- Every queue that has lanes or a row, with what is live in it; what is queued is counted to a bound.
WITH lane AS MATERIALIZED (
    SELECT l.id, l.queue, t.name IS NOT NULL AS known
      FROM mainspring.lanes l
      LEFT JOIN mainspring.tasks t ON t.namespace = l.namespace AND t.name = l.task
     WHERE l.namespace = $1
), counted AS (
    SELECT l.queue,
           CASE WHEN l.known THEN q.runs ELSE 0 END AS queued,
           coalesce(g.runs, 0) + coalesce(p.runs, 0) AS running,
           coalesce(h.runs, 0) + CASE WHEN l.known THEN 0 ELSE q.runs END AS held
      FROM lane l
     CROSS JOIN LATERAL (
            SELECT count(*) AS runs
              FROM (SELECT 1 FROM mainspring.runs r WHERE r.lane = l.id AND r.state = 0 LIMIT 100000) AS x) AS q
      LEFT JOIN (SELECT r.lane, count(*) AS runs FROM mainspring.runs r WHERE r.state = 1 GROUP BY 1) AS g
        ON g.lane = l.id
      LEFT JOIN (SELECT r.lane, count(*) AS runs FROM mainspring.runs r
                  WHERE r.state IN (2, 3, 4, 5) AND r.state = 2 GROUP BY 1) AS h
        ON h.lane = l.id
      LEFT JOIN (SELECT r.lane, count(*) AS runs FROM mainspring.runs r
                  WHERE r.state IN (2, 3, 4, 5) AND r.state = 4 GROUP BY 1) AS p
        ON p.lane = l.id
), named AS (
    SELECT queue AS name FROM lane UNION SELECT q.name FROM mainspring.queues q WHERE q.namespace = $1
)
SELECT n.name, coalesce(q.paused, false) AS paused, coalesce(sum(c.queued), 0)::bigint AS queued,
       coalesce(sum(c.running), 0)::bigint AS running, coalesce(sum(c.held), 0)::bigint AS held, q.limits
  FROM named n
  LEFT JOIN counted c ON c.queue = n.name
  LEFT JOIN mainspring.queues q ON q.namespace = $1 AND q.name = n.name
 WHERE $2::text IS NULL OR n.name = $2
 GROUP BY n.name, q.paused, q.limits
 ORDER BY n.name

-- name: lanes_of_queue
-- The lanes of one queue.
SELECT id FROM mainspring.lanes WHERE namespace = $1 AND queue = $2

-- name: count_runs
-- Live runs by state, as readers see them; what is queued is counted to a bound.
SELECT s.state, s.runs, s.oldest
  FROM (
    SELECT CASE WHEN t.name IS NULL THEN 2 ELSE 0 END AS state, sum(q.runs)::bigint AS runs,
           min(CASE WHEN t.name IS NULL THEN NULL ELSE q.oldest END) AS oldest
      FROM mainspring.lanes l
      LEFT JOIN mainspring.tasks t ON t.namespace = l.namespace AND t.name = l.task
     CROSS JOIN LATERAL (
            SELECT count(*) AS runs, min(x.ready_at) AS oldest
              FROM (SELECT r.ready_at FROM mainspring.runs r WHERE r.lane = l.id AND r.state = 0 LIMIT 100000) AS x) AS q
     WHERE l.namespace = $1
     GROUP BY 1
    UNION ALL
    SELECT r.state, count(*), NULL
      FROM mainspring.runs r JOIN mainspring.lanes l ON l.id = r.lane
     WHERE r.state IN (2, 3, 4, 5) AND l.namespace = $1
     GROUP BY 1
    UNION ALL
    SELECT 1, count(*), NULL
      FROM mainspring.runs r JOIN mainspring.lanes l ON l.id = r.lane
     WHERE r.state = 1 AND l.namespace = $1) AS s
 WHERE s.runs > 0

-- name: count_jobs
-- Rows of jobs by state; those that are due some day are counted to a bound.
SELECT s.state, count(*) AS jobs
  FROM (
    (SELECT j.state FROM mainspring.jobs j JOIN mainspring.lanes l ON l.id = j.lane
      WHERE j.state IN (0, 2) AND j.scheduled_at IS NOT NULL AND l.namespace = $1 LIMIT 100000)
    UNION ALL
    (SELECT j.state FROM mainspring.jobs j JOIN mainspring.lanes l ON l.id = j.lane
      WHERE j.state IN (1, 3, 4, 5) AND l.namespace = $1 LIMIT 100000)) AS s
 GROUP BY s.state

-- name: count_others
-- Workers, schedulers, dead letters and the next instant at which something fires.
SELECT (SELECT count(*) FROM mainspring.workers WHERE lost_at IS NULL) AS workers,
       (SELECT count(*) FROM mainspring.schedulers) AS schedulers,
       (SELECT count(*) FROM mainspring.dead_letters d JOIN mainspring.lanes l ON l.id = d.lane
         WHERE l.namespace = $1) AS dead_letters,
       (SELECT min(n.scheduled_at)
          FROM generate_series(0, 255) AS s (shard)
         CROSS JOIN LATERAL (
                SELECT j.scheduled_at
                  FROM mainspring.jobs j JOIN mainspring.lanes l ON l.id = j.lane
                 WHERE j.shard = s.shard::smallint AND j.state IN (0, 2) AND j.scheduled_at IS NOT NULL
                   AND l.namespace = $1
                 ORDER BY j.scheduled_at
                 LIMIT 1) AS n) AS next_fire_at

-- name: begin_idempotent
-- Reserves a new key, or one whose day is over.
INSERT INTO mainspring.idempotency AS i (namespace, key, body_hash, created_at, begun_at)
VALUES ($1, $2, $3, $4, $4)
    ON CONFLICT (namespace, key) DO UPDATE
   SET body_hash = $3, created_at = $4, begun_at = $4, status = NULL, body = NULL
 WHERE i.created_at <= $4 - $5::bigint
RETURNING created_at

-- name: take_over_idempotent
-- A request that is in flight for too long is taken over by the next sender of the same body.
UPDATE mainspring.idempotency SET begun_at = $4
 WHERE namespace = $1 AND key = $2 AND body_hash = $3 AND status IS NULL AND begun_at < $4 - $5::bigint
RETURNING created_at

-- name: idempotent
-- What is known of a key.
SELECT body_hash, created_at, status, body FROM mainspring.idempotency WHERE namespace = $1 AND key = $2

-- name: end_idempotent
-- The answer, for whoever asks again.
UPDATE mainspring.idempotency SET status = $3, body = $4 WHERE namespace = $1 AND key = $2

-- name: forget_idempotent
-- The request stored nothing.
DELETE FROM mainspring.idempotency WHERE namespace = $1 AND key = $2 AND status IS NULL

-- name: logs
-- Lines of a run in their order.
SELECT number, run_id, attempt, at, level, message, fields
  FROM mainspring.logs
 WHERE run_id = $1 AND number > $2
 ORDER BY number
 LIMIT $3
 
-- name: append_logs
-- Lines in the order in which they came.
INSERT INTO mainspring.logs (run_id, attempt, at, level, message, fields)
SELECT k.run_id, k.attempt, k.at, k.level, k.message, k.fields
  FROM unnest($1::uuid[], $2::integer[], $3::bigint[], $4::text[], $5::text[], $6::text[])
       WITH ORDINALITY AS k (run_id, attempt, at, level, message, fields, place)
 ORDER BY k.place

-- name: drop_answers
-- Idempotency keys whose day is over.
DELETE FROM mainspring.idempotency WHERE created_at <= $1

-- name: drop_dead_letters
-- Dead letters past their time.
DELETE FROM mainspring.dead_letters WHERE finished_at < $1

-- name: drop_lost_workers
-- Lost workers whose runs have all been rescued.
DELETE FROM mainspring.workers w
 WHERE w.lost_at < $1 AND NOT EXISTS (SELECT 1 FROM mainspring.runs r WHERE r.worker = w.id AND r.state = 1)

-- name: drop_silent_schedulers
-- Schedulers that have not beaten for a day.
DELETE FROM mainspring.schedulers WHERE beat_at < $1

-- name: partitions
-- The partitions of a table in this schema.
SELECT c.relname
  FROM pg_catalog.pg_inherits i
  JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = $1::text::regclass

-- name: drop_old_history
-- What fell outside of every partition and is over its time.
DELETE FROM mainspring.history_default WHERE finished_at < $1

-- name: drop_old_logs
-- What fell outside of every partition and is over its time.
DELETE FROM mainspring.logs_default WHERE at < $1

-- name: bound_locks
-- Upkeep never makes the hot tables wait for longer than this.
SET LOCAL lock_timeout = '900ms'

-- name: lock_upkeep
-- Two upkeeps at once: the second waits for the first, and finds its work done.
SELECT pg_catalog.pg_advisory_xact_lock(hashtextextended($1, 7302))

-- name: partition_exists
-- Asked again once we are alone.
SELECT to_regclass($1) IS NOT NULL

-- name: new_partition
-- A day of its own, not yet attached: attaching locks only what it must.
CREATE TABLE mainspring.{partition} (LIKE mainspring.{table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)

-- name: fill_partition
-- Rows of that day that came before their partition.
WITH early AS (
    DELETE FROM mainspring.{table}_default WHERE {column} >= {first} AND {column} < {end} RETURNING *
)
INSERT INTO mainspring.{partition} SELECT * FROM early

-- name: attach_partition
-- From its commit on the day's rows go there.
ALTER TABLE mainspring.{table} ATTACH PARTITION mainspring.{partition} FOR VALUES FROM ({first}) TO ({end})

-- name: drop_partition
-- A whole day goes at once.
DROP TABLE IF EXISTS mainspring.{partition}
