-- name: create_runs
-- The least a queue with fencing can be, in one file.
CREATE TABLE floor_runs (
    id BLOB NOT NULL UNIQUE, lane INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0, priority INTEGER NOT NULL DEFAULT 50,
    fence INTEGER NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 0, ready_at INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL, created_at INTEGER NOT NULL, started_at INTEGER, worker BLOB, payload BLOB NOT NULL
)

-- name: create_claim_index
-- The line that claims are taken from.
CREATE INDEX floor_claim ON floor_runs (lane, priority DESC, ready_at, id) WHERE state = 0

-- name: create_history
-- What has ended.
CREATE TABLE floor_history (
    id BLOB NOT NULL, lane INTEGER NOT NULL, status INTEGER NOT NULL, priority INTEGER NOT NULL, fence INTEGER NOT NULL,
    attempt INTEGER NOT NULL, ready_at INTEGER NOT NULL, scheduled_at INTEGER NOT NULL, created_at INTEGER NOT NULL,
    started_at INTEGER, finished_at INTEGER NOT NULL, worker BLOB, payload BLOB NOT NULL, result BLOB
)

-- name: create_history_index
-- A run that has ended is found by its id.
CREATE INDEX floor_history_id ON floor_history (id)

-- name: fill
-- Runs to drain.
INSERT INTO floor_runs (id, lane, ready_at, scheduled_at, created_at, payload) VALUES (?1, 1, ?2, ?2, ?2, X'7B7D')

-- name: claim
-- The heads of the line, taken in one statement.
UPDATE floor_runs SET state = 1, fence = fence + 1, attempt = attempt + 1, worker = ?1, started_at = ?2
WHERE rowid IN (
    SELECT rowid FROM floor_runs WHERE lane = 1 AND state = 0 ORDER BY priority DESC, ready_at, id LIMIT ?3)
RETURNING id, fence, attempt, payload, scheduled_at

-- name: record
-- Ended runs, each with its own outcome and result, if the fence is still its own: ids as one BLOB, the rest as JSON.
INSERT INTO floor_history (id, lane, status, priority, fence, attempt, ready_at, scheduled_at, created_at,
                           started_at, finished_at, worker, payload, result)
SELECT r.id, r.lane, ending.value ->> 1, r.priority, r.fence, r.attempt, r.ready_at, r.scheduled_at, r.created_at,
       r.started_at, ?3, r.worker, r.payload, CAST(ending.value ->> 2 AS BLOB)
FROM json_each(?2) AS ending
CROSS JOIN floor_runs AS r ON r.id = substr(?1, ending.key * 16 + 1, 16)
WHERE r.fence = ending.value ->> 0 AND r.state = 1

-- name: remove
-- They are held no more.
DELETE FROM floor_runs WHERE id IN (SELECT substr(?1, ending.key * 16 + 1, 16) FROM json_each(?2) AS ending)

-- name: drop_runs
-- Leaves nothing behind.
DROP TABLE floor_runs

-- name: drop_history
-- Leaves nothing behind.
DROP TABLE floor_history
