-- What the threads say to SQLite besides the verbs.

-- name: begin_reading
-- One snapshot for all that a verb reads.
BEGIN;

-- name: begin_writing
-- Takes the write lock at once, so that no transaction fails half-way because another program wrote.
BEGIN IMMEDIATE;

-- name: commit
-- Durable when it returns.
COMMIT;

-- name: rollback
-- Ends a snapshot, or undoes.
ROLLBACK;

-- name: savepoint_verb
-- One of several verbs that share a transaction begins.
SAVEPOINT verb;

-- name: rollback_verb
-- It failed alone.
ROLLBACK TO verb;

-- name: release_verb
-- It is done.
RELEASE verb;

-- name: savepoint_try
-- A short way is tried that may turn out not to be one.
SAVEPOINT try;

-- name: rollback_try
-- It was not.
ROLLBACK TO try;

-- name: release_try
-- The try is over.
RELEASE try;

-- name: data_version
-- Changes when another connection has committed.
PRAGMA data_version;

-- name: queues_with_work
-- Where something may have become ready.
SELECT DISTINCT queue FROM lanes
WHERE EXISTS (SELECT 1 FROM runs WHERE runs.lane = lanes.id AND runs.state = 0);

-- name: workers_with_orders
-- Who may have been asked for something.
SELECT worker FROM runs INDEXED BY runs_cancelling WHERE worker IS NOT NULL AND cancel_requested_at IS NOT NULL
UNION
SELECT id FROM workers WHERE draining = 1 OR lost_at IS NOT NULL;

-- name: synchronous_full
-- A commit that returned survives a power cut.
PRAGMA synchronous = FULL;

-- name: cache_size
-- 64 MiB of pages for the writer.
PRAGMA cache_size = -65536;

-- name: temp_in_memory
-- Sorts and lists of a statement never touch the disk.
PRAGMA temp_store = MEMORY;

-- name: query_only
-- A reader that tries to write is a bug.
PRAGMA query_only = ON;

-- name: journal_mode
-- How the file is written: wal, or a rollback journal.
PRAGMA journal_mode;

-- name: journal_wal
-- Readers and the writer do not wait for each other.
PRAGMA journal_mode = WAL;

-- name: journal_delete
-- The mode in which every version of SQLite keeps every commit.
PRAGMA journal_mode = DELETE;

-- name: checkpoint_pages
-- 16 MiB of log between two checkpoints.
PRAGMA wal_autocheckpoint = 4000;

-- name: is_ours
-- Whether the file holds a schema of ours, and of which programs.
SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('meta', 'migrations', 'runs');

-- name: create_bookkeeping
-- What the migrator itself needs: which steps were applied.
CREATE TABLE IF NOT EXISTS migrations (
    name TEXT NOT NULL PRIMARY KEY,
    checksum TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) WITHOUT ROWID;

-- name: create_meta
-- Facts about the schema as a whole, by name.
CREATE TABLE IF NOT EXISTS meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- name: applied_steps
-- The steps that this file has seen, with their checksums.
SELECT name, checksum FROM migrations;

-- name: record_step
-- A step is applied.
INSERT INTO migrations (name, checksum, applied_at) VALUES (?1, ?2, ?3);

-- name: record_step_by_hand
-- The same in a script that a person runs.
INSERT INTO migrations (name, checksum, applied_at)
VALUES ('{name}', '{checksum}', CAST(strftime('%s', 'now') AS INTEGER) * 1000000);

-- name: min_program
-- The oldest program that may use this schema.
SELECT value FROM meta WHERE name = 'min_program';

-- name: raise_min_program
-- Programs older than this one refuse the schema from now on.
INSERT INTO meta (name, value) VALUES ('min_program', ?1)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
WHERE CAST(excluded.value AS INTEGER) > CAST(meta.value AS INTEGER);
