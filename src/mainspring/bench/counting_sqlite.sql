-- name: queued
-- Whether anything waits to be claimed.
SELECT EXISTS (SELECT 1 FROM runs WHERE state = 0)

-- name: live
-- Whether anything has not ended.
SELECT EXISTS (SELECT 1 FROM runs)

-- name: tally
-- What became of the runs, by their own rows.
SELECT count(*), count(DISTINCT id), coalesce(sum(max(attempt - 1, 0)), 0),
       count(*) FILTER (WHERE started_at < scheduled_at), coalesce(min(started_at), 0), coalesce(max(finished_at), 0)
FROM history WHERE state = 10

-- name: spans
-- From one instant of a run to a later one.
SELECT {end} - {begin} FROM history WHERE state = 10

-- name: rest
-- The log is brought home, so that the next measurement begins with an empty one.
PRAGMA wal_checkpoint(TRUNCATE)

-- name: journal
-- How the file is written.
PRAGMA journal_mode

-- name: pages
-- How large its pages are.
PRAGMA page_size

-- name: skipped
-- Occurrences that have a record instead of a run.
SELECT coalesce(sum(count), 0) FROM history WHERE state = 13

-- name: overtaken
-- Runs that started after one of a lower priority had.
WITH firsts AS MATERIALIZED (
    SELECT priority, min(started_at) AS first FROM history WHERE state = 10 GROUP BY priority
)
SELECT count(DISTINCT one.id)
FROM history AS one
JOIN firsts AS lower ON lower.priority < one.priority AND lower.first < one.started_at
WHERE one.state = 10

-- name: by_priority
-- The first and the last start of each, against the instant they were due.
SELECT priority, min(started_at - scheduled_at), max(started_at - scheduled_at)
FROM history WHERE state = 10 GROUP BY priority ORDER BY priority DESC
