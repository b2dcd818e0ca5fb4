-- Claims and what workers say of themselves.

-- name: claim
-- Heads of the open lanes, merged queue by queue, then locked: never more rows than are taken, never waiting for another claim.
WITH clock AS MATERIALIZED (
    SELECT mainspring.instant($8) AS now
), me AS MATERIALIZED (
    -- The lock makes a claim and the declaration that its worker is lost follow one another.
    SELECT w.id FROM mainspring.workers w WHERE w.id = $1 AND w.lost_at IS NULL FOR SHARE
), open AS MATERIALIZED (
    SELECT l.id, l.queue
      FROM mainspring.lanes l
     WHERE l.namespace = $7 AND l.task = ANY ($2::text[]) AND ($3::text[] IS NULL OR l.queue = ANY ($3))
       AND NOT EXISTS (
            SELECT 1 FROM mainspring.queues q WHERE q.namespace = l.namespace AND q.name = l.queue AND q.paused)
       AND EXISTS (SELECT 1 FROM me)
), heads AS (
    SELECT o.id AS lane, o.queue, h.priority, h.ready_at, h.id
      FROM open o
     CROSS JOIN LATERAL (
            SELECT r.priority, r.ready_at, r.id
              FROM mainspring.runs r
             WHERE r.lane = o.id AND r.state = 0 AND r.ready_at <= (SELECT now FROM clock) AND (r.deaths < 2 OR $5)
               AND (r.expires_at IS NULL OR r.expires_at > (SELECT now FROM clock) OR r.attempt > 0)
             ORDER BY r.priority DESC, r.ready_at, r.id
             LIMIT $4) AS h
     WHERE (SELECT count(*) FROM open) > 1
), turns AS (
    SELECT lane, queue, row_number() OVER (PARTITION BY queue ORDER BY priority DESC, ready_at, id) AS turn FROM heads
), quota AS (
    SELECT lane, count(*) AS runs
      FROM (SELECT lane FROM turns ORDER BY turn, queue <= $9, queue LIMIT $4) AS first
     GROUP BY lane
    UNION ALL
    SELECT id, $4 FROM open WHERE (SELECT count(*) FROM open) = 1
), taken AS MATERIALIZED (
    SELECT t.place, t.size, t.priority, t.ready_at, t.id
      FROM quota q
     CROSS JOIN LATERAL (
            SELECT r.ctid AS place, octet_length(r.payload) AS size, r.priority, r.ready_at, r.id
              FROM mainspring.runs r
             WHERE r.lane = q.lane AND r.state = 0 AND r.ready_at <= (SELECT now FROM clock) AND (r.deaths < 2 OR $5)
               AND (r.expires_at IS NULL OR r.expires_at > (SELECT now FROM clock) OR r.attempt > 0)
             ORDER BY r.priority DESC, r.ready_at, r.id
             LIMIT q.runs
               FOR UPDATE SKIP LOCKED) AS t
), fit AS (
    SELECT place FROM taken WHERE (SELECT sum(size) FROM taken) <= $6
    UNION ALL
    SELECT s.place
      FROM (SELECT place, row_number() OVER w AS number, sum(size) OVER w AS bytes
              FROM taken WINDOW w AS (ORDER BY priority DESC, ready_at, id ROWS UNBOUNDED PRECEDING)) AS s
     WHERE (SELECT sum(size) FROM taken) > $6 AND (s.bytes <= $6 OR s.number = 1)
)
UPDATE mainspring.runs r
   SET state = 1, worker = $1, fence = r.fence + 1, attempt = r.attempt + 1, started_at = (SELECT now FROM clock),
       lateness = CASE WHEN r.attempt = 0 THEN greatest(0, (SELECT now FROM clock) - greatest(r.scheduled_at, r.created_at))
                       ELSE r.lateness END
{places}
RETURNING r.id, r.fence, r.attempt, r.spent, r.deaths, r.payload, r.document, r.scheduled_at, r.started_at,
          nullif(r.job_id, r.id),          r.priority, r.catch_up, r.attempts, r.lateness, r.created_at, r.lane,
          ((128 - r.priority)::bigint << 52) | r.ready_at

-- name: places_joined
-- For plans that are kept: whatever size the table has, nothing is cheaper than to go to each place.
  FROM fit f
 WHERE r.ctid = f.place AND r.state + 0 = 0

-- name: places_listed
-- For plans that are made anew each time, with the planner's own settings.
 WHERE r.ctid = ANY (ARRAY(SELECT place FROM fit)) AND r.state = 0

-- name: lanes
-- All lanes there are; they are few and stay.
SELECT id, namespace, queue, task, region, placement FROM mainspring.lanes

-- name: add_lanes
-- New lanes get numbers.
INSERT INTO mainspring.lanes (namespace, queue, task, region, placement)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
    ON CONFLICT DO NOTHING

-- name: registered
-- Which of these tasks a worker registered at some time.
SELECT t.namespace, t.name
  FROM mainspring.tasks t
  JOIN unnest($1::text[], $2::text[]) AS k (namespace, name) ON t.namespace = k.namespace AND t.name = k.name

-- name: known_tasks
-- What workers said of their tasks.
SELECT name, signature, defaults FROM mainspring.tasks
 WHERE namespace = $1 AND ($2::text[] IS NULL OR name = ANY ($2))
 ORDER BY name

-- name: register_worker
-- A worker begins, or is back after an outage; one that was declared lost stays lost.
INSERT INTO mainspring.workers AS w (id, namespace, host, pid, queues, slots, version, lease, keeper, started_at, beat_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
    ON CONFLICT (id) DO UPDATE
   SET namespace = $2, host = $3, pid = $4, queues = $5, slots = $6, version = $7, lease = $8,
       keeper = coalesce($9, w.keeper), beat_at = $10, beat = w.beat + 1
 WHERE w.lost_at IS NULL

-- name: register_tasks
-- What this worker can carry out, in the order of names; answers the queues whose lanes opened by it.
WITH known AS (
    SELECT t.name FROM mainspring.tasks t WHERE t.namespace = $1 AND t.name = ANY ($2)
), added AS (
    INSERT INTO mainspring.tasks AS t (namespace, name, signature, defaults, seen_at)
    SELECT $1, k.name, k.signature, k.defaults, $5
      FROM unnest($2::text[], $3::text[], $4::text[]) AS k (name, signature, defaults)
     ORDER BY k.name
        ON CONFLICT (namespace, name) DO UPDATE
       SET signature = excluded.signature, defaults = excluded.defaults, seen_at = excluded.seen_at
)
SELECT DISTINCT l.queue
  FROM mainspring.lanes l
 WHERE l.namespace = $1 AND l.task = ANY ($2) AND l.task NOT IN (SELECT name FROM known)

-- name: beat
-- One statement for all workers of a host, in the order of their ids.
UPDATE mainspring.workers w
   SET beat = w.beat + 1, beat_at = c.now, keeper = coalesce($2, w.keeper)
  FROM (SELECT mainspring.instant($3) AS now) AS c
 WHERE w.id IN (
    SELECT m.id FROM mainspring.workers m WHERE m.id = ANY ($1::uuid[]) AND m.lost_at IS NULL ORDER BY m.id FOR UPDATE)
RETURNING w.id, w.draining, c.now

-- name: cancels_of_workers
-- The runs of these workers whose cancel was asked for.
SELECT r.worker, r.id, r.fence
  FROM mainspring.runs r
 WHERE r.worker = ANY ($1::uuid[]) AND r.state = 1 AND r.cancel_requested_at IS NOT NULL

-- name: drain_worker
-- Asks a worker to take nothing more.
UPDATE mainspring.workers SET draining = true WHERE id = $1 AND lost_at IS NULL RETURNING id

-- name: forget_worker
-- A worker that has stopped and holds nothing leaves; one that still holds runs is kept as lost until they are rescued.
WITH held AS (
    SELECT 1 FROM mainspring.runs r WHERE r.worker = $1 AND r.state = 1 LIMIT 1
), gone AS (
    DELETE FROM mainspring.workers WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM held)
)
UPDATE mainspring.workers
   SET lost_at = coalesce(lost_at, mainspring.instant($2)), evidence = coalesce(evidence, 'death')
 WHERE id = $1 AND EXISTS (SELECT 1 FROM held)

-- name: workers
-- The registered workers, with how many runs each holds.
SELECT w.*, coalesce(n.running, 0) AS running
  FROM mainspring.workers w
  LEFT JOIN (SELECT r.worker, count(*) AS running FROM mainspring.runs r WHERE r.state = 1 GROUP BY r.worker) AS n
    ON n.worker = w.id
 WHERE w.lost_at IS NULL OR ($1 AND n.running > 0)
 ORDER BY w.id

-- name: declare_lost
-- From its commit on the worker claims nothing; with a beat, only while it has not beaten since.
UPDATE mainspring.workers
   SET lost_at = mainspring.instant($5), evidence = $2, culprit = $4
 WHERE id = $1 AND lost_at IS NULL AND ($3::bigint IS NULL OR beat = $3)
RETURNING id

-- name: lost_runs
-- What lost workers, or unknown ones, still hold; last what may bear their silence longer.
SELECT v.*, w.evidence, w.culprit, coalesce(w.lost_at, 0) AS lost_at, coalesce(w.lease, 0) AS lease
  FROM (
    SELECT r.id
      FROM (SELECT DISTINCT worker FROM mainspring.runs WHERE state = 1) AS h
      LEFT JOIN mainspring.workers w ON w.id = h.worker
      JOIN mainspring.runs r ON r.worker = h.worker AND r.state = 1
     WHERE w.id IS NULL OR w.lost_at IS NOT NULL
     ORDER BY coalesce(w.evidence = 'silence' AND strpos(r.document, '"lost_after":') > 0, false), r.id
     LIMIT $1) AS k
  JOIN mainspring.live_runs v ON (v.id = k.id)
  LEFT JOIN mainspring.workers w ON w.id = v.worker

-- name: scheduler_beat
-- A scheduler lives.
INSERT INTO mainspring.schedulers (id, host, beat_at) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE SET host = $2, beat_at = $3

-- name: schedulers
-- Those that beat lately.
SELECT id, host, beat_at FROM mainspring.schedulers WHERE beat_at >= $1 ORDER BY id

-- name: scheduler_stop
-- A scheduler has stopped by itself.
DELETE FROM mainspring.schedulers WHERE id = $1
