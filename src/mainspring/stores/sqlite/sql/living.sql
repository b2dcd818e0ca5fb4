-- Who lives: workers, those declared lost, schedulers.

-- name: workers
-- All of them, in the order of their ids.
SELECT id, namespace, host, pid, queues, slots, version, lease, keeper, started_at, beat_at, beat, draining, lost_at,
    evidence, (SELECT count(*) FROM runs WHERE runs.worker = workers.id AND runs.state = 1)
FROM workers ORDER BY id;

-- name: add_worker
-- A worker process begins, or comes back after an outage; one that was declared lost stays lost.
INSERT INTO workers (id, namespace, host, pid, queues, slots, version, lease, keeper, started_at, beat_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)
ON CONFLICT (id) DO UPDATE
SET namespace = excluded.namespace, host = excluded.host, pid = excluded.pid, queues = excluded.queues,
    slots = excluded.slots, version = excluded.version, lease = excluded.lease, keeper = excluded.keeper,
    beat_at = excluded.beat_at, beat = beat + 1
WHERE lost_at IS NULL;

-- name: add_task
-- What a worker says about a task; the newest word counts.
INSERT INTO tasks (namespace, name, signature, defaults, seen_at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (namespace, name) DO UPDATE
SET signature = excluded.signature, defaults = excluded.defaults, seen_at = excluded.seen_at;

-- name: known_tasks
-- All that workers registered.
SELECT name, signature, defaults FROM tasks WHERE namespace = ?1 ORDER BY name;

-- name: beat
-- Whether a worker is still known, and whether it is to drain.
SELECT draining FROM workers WHERE id = ?1 AND lost_at IS NULL;

-- name: cancels_of_worker
-- The runs it is asked to cancel.
SELECT id, fence FROM runs INDEXED BY runs_cancelling
WHERE worker = ?1 AND cancel_requested_at IS NOT NULL AND state = 1;

-- name: start_drain
-- From its next beat on it takes nothing new.
UPDATE workers SET draining = 1 WHERE id = ?1 AND lost_at IS NULL;

-- name: drop_worker
-- It has stopped by itself and holds nothing.
DELETE FROM workers WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM runs WHERE worker = ?1 AND state = 1);

-- name: declare_lost
-- Evidence stands against it.
UPDATE workers SET lost_at = ?2, evidence = ?3, culprit = ?4
WHERE id = ?1 AND lost_at IS NULL AND (?5 IS NULL OR beat = ?5);

-- name: holders_gone
-- Workers that hold runs and are lost or unknown: one seek per holder, not per run.
WITH RECURSIVE holders (worker) AS (
    SELECT min(worker) FROM runs WHERE worker IS NOT NULL
    UNION ALL
    SELECT (SELECT min(worker) FROM runs WHERE worker IS NOT NULL AND worker > holders.worker)
    FROM holders WHERE holders.worker IS NOT NULL)
SELECT holders.worker, workers.evidence, workers.culprit, coalesce(workers.lost_at, 0), coalesce(workers.lease, 0)
FROM holders LEFT JOIN workers ON workers.id = holders.worker
WHERE holders.worker IS NOT NULL AND (workers.id IS NULL OR workers.lost_at IS NOT NULL);

-- name: held_by_worker
-- What a lost worker was doing.
SELECT rowid, id, lane, document, spent, deaths, attempt, attempts, started_at, cancel_requested_at
FROM runs WHERE worker = ?1 AND state = 1;

-- name: lose_attempt
-- What becomes of its run. It keeps worker and start only where the run has ended with it.
UPDATE runs
SET state = ?2, spent = ?3, deaths = ?4, attempts = ?5, reason = coalesce(?6, reason), ready_at = coalesce(?7, ready_at),
    error = ?8,
    worker = CASE WHEN ?2 >= 10 THEN worker END, started_at = CASE WHEN ?2 >= 10 THEN started_at END
WHERE rowid = ?1;

-- name: scheduler_beat
-- It lives.
INSERT INTO schedulers (id, host, beat_at) VALUES (?1, ?2, ?3)
ON CONFLICT (id) DO UPDATE SET host = excluded.host, beat_at = excluded.beat_at;

-- name: scheduler_stop
-- It has stopped.
DELETE FROM schedulers WHERE id = ?1;

-- name: schedulers
-- Those that have beaten lately.
SELECT id, host, beat_at FROM schedulers WHERE beat_at >= ?1 ORDER BY id;
