-- The bare loop that the SQLite store is measured against: the same writes, nothing decided.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA cache_size = -65536;
CREATE TABLE runs (id BLOB NOT NULL UNIQUE, lane INTEGER, state INTEGER, priority INTEGER, ready_at INTEGER,
    fence INTEGER, attempt INTEGER, worker BLOB, started_at INTEGER, payload BLOB);
CREATE INDEX runs_claim ON runs (lane, priority DESC, ready_at, id) WHERE state = 0;
CREATE INDEX runs_running ON runs (worker) WHERE worker IS NOT NULL;
CREATE TABLE history (number INTEGER PRIMARY KEY, id BLOB NOT NULL, lane INTEGER, state INTEGER, priority INTEGER,
    ready_at INTEGER, fence INTEGER, attempt INTEGER, worker BLOB, started_at INTEGER, finished_at INTEGER, payload BLOB);
CREATE INDEX history_id ON history (id);
-- next
INSERT INTO runs (id, lane, state, priority, ready_at, fence, attempt, payload) VALUES (?1, 1, 0, 50, ?2, 0, 0, ?3)
-- next
UPDATE runs SET state = 1, fence = fence + 1, attempt = attempt + 1, worker = x'00112233445566778899aabbccddeeff',
    started_at = 1700000000000000
WHERE rowid IN (SELECT rowid FROM runs WHERE lane = 1 AND state = 0 ORDER BY priority DESC, ready_at, id LIMIT ?1)
RETURNING rowid, id, payload
-- next
INSERT INTO history (id, lane, state, priority, ready_at, fence, attempt, worker, started_at, finished_at, payload)
SELECT id, lane, 10, priority, ready_at, fence, attempt, worker, started_at, 1700000000000001, payload
FROM runs WHERE rowid IN (SELECT value FROM json_each(?1))
-- next
DELETE FROM runs WHERE rowid IN (SELECT value FROM json_each(?1))
