-- name: queued
-- Whether anything waits to be claimed; read from the end of the line, so as not to pass by all that was claimed.
SELECT id FROM {schema}.runs WHERE state = 0 ORDER BY lane DESC, priority, ready_at DESC, id DESC LIMIT 1

-- name: live
-- Whether anything has not ended; read from the newest, so as not to pass by all that has.
SELECT id FROM {schema}.runs ORDER BY id DESC LIMIT 1

-- name: tally
-- What became of the runs, by their own rows.
SELECT count(*), count(DISTINCT id), coalesce(sum(greatest(attempt - 1, 0)), 0),
       count(*) FILTER (WHERE started_at < scheduled_at), coalesce(min(started_at), 0), coalesce(max(finished_at), 0)
FROM {schema}.history WHERE state = 10

-- name: spans
-- From one instant of a run to a later one.
SELECT {end} - {begin} FROM {schema}.history WHERE state = 10

-- name: settle_runs
-- What vacuum would do in its own time.
VACUUM ANALYZE {schema}.runs

-- name: settle_lanes
-- What vacuum would do in its own time.
VACUUM ANALYZE {schema}.lanes

-- name: create_schema
-- A place of its own.
CREATE SCHEMA {schema}

-- name: remove_schema
-- Leaves nothing behind.
DROP SCHEMA IF EXISTS {schema} CASCADE

-- name: create_probe
-- What the flush of a commit is measured on.
CREATE TABLE {schema}.bench_probe (number integer)

-- name: probe_write
-- A commit that must reach the disk.
INSERT INTO {schema}.bench_probe VALUES (1)

-- name: probe_read
-- The same round trip without a flush.
SELECT count(*) FROM (VALUES (1)) AS one

-- name: drop_probe
-- Leaves nothing behind.
DROP TABLE {schema}.bench_probe

-- name: setting
-- One of those that figures depend on.
SELECT current_setting($1, true)

-- name: server
-- Who serves us: on this machine its processes can be counted.
SELECT pg_backend_pid(), inet_server_addr() IS NULL OR inet_server_addr() << '127.0.0.0/8' OR inet_server_addr() = '::1'

-- name: skipped
-- Occurrences that have a record instead of a run.
SELECT coalesce(sum(count), 0) FROM {schema}.history WHERE state = 13

-- name: overtaken
-- Runs that started after one of a lower priority had.
WITH firsts AS MATERIALIZED (
    SELECT priority, min(started_at) AS first FROM {schema}.history WHERE state = 10 GROUP BY priority
)
SELECT count(DISTINCT one.id)
FROM {schema}.history AS one
JOIN firsts AS lower ON lower.priority < one.priority AND lower.first < one.started_at
WHERE one.state = 10

-- name: by_priority
-- The first and the last start of each, against the instant they were due.
SELECT priority, min(started_at - scheduled_at), max(started_at - scheduled_at)
FROM {schema}.history WHERE state = 10 GROUP BY priority ORDER BY priority DESC

-- name: settle_jobs
-- What vacuum would do in its own time.
VACUUM ANALYZE {schema}.jobs
