-- name: create
-- The least a queue with history and fencing can be, in one file.
CREATE TABLE floor_runs (
    id BLOB PRIMARY KEY, lane INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0, priority INTEGER NOT NULL DEFAULT 50,
    fence INTEGER NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 0, ready_at INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL, created_at INTEGER NOT NULL, started_at INTEGER, worker BLOB, payload BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX floor_claim ON floor_runs (lane, priority DESC, ready_at, id) WHERE state = 0;
CREATE TABLE floor_history (
    id BLOB NOT NULL, lane INTEGER NOT NULL, status INTEGER NOT NULL, priority INTEGER NOT NULL, fence INTEGER NOT NULL,
    attempt INTEGER NOT NULL, ready_at INTEGER NOT NULL, scheduled_at INTEGER NOT NULL, created_at INTEGER NOT NULL,
    started_at INTEGER, finished_at INTEGER NOT NULL, worker BLOB, payload BLOB NOT NULL, result BLOB
);
CREATE INDEX floor_history_id ON floor_history (id)

-- name: fill
-- Runs to drain.
INSERT INTO floor_runs (id, lane, ready_at, scheduled_at, created_at, payload) VALUES (?, 1, ?2, ?2, ?2, X'7B7D')

-- name: heads
-- The heads of the line.
SELECT id, fence + 1, attempt + 1, payload, scheduled_at FROM floor_runs
WHERE lane = 1 AND state = 0 ORDER BY priority DESC, ready_at, id LIMIT ?

-- name: claim
-- Takes one of them.
UPDATE floor_runs SET state = 1, fence = fence + 1, attempt = attempt + 1, worker = ?, started_at = ? WHERE id = ?

-- name: record
-- One ended run, if the fence is still its own.
INSERT INTO floor_history SELECT id, lane, ?, priority, fence, attempt, ready_at, scheduled_at, created_at, started_at,
    ?, worker, payload, ? FROM floor_runs WHERE id = ? AND fence = ? AND state = 1

-- name: remove
-- It is held no more.
DELETE FROM floor_runs WHERE id = ? AND fence = ? AND state = 1
