-- Calendars by name, and definitions by time.

-- name: calendar_marks
-- Which state of each calendar is in force.
SELECT namespace, name, version, updated_at FROM calendars;

-- name: calendars
-- Calendars of a namespace: all, or those named.
SELECT namespace, name, version, updated_at, document FROM calendars
WHERE namespace = ?1 AND (?2 IS NULL OR name IN (SELECT value FROM json_each(?2)))
ORDER BY name;

-- name: put_calendar
-- The calendar as it is from now on; who asks has seen the version.
INSERT OR REPLACE INTO calendars (namespace, name, version, updated_at, document) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: delete_calendar
-- Nobody uses it.
DELETE FROM calendars WHERE namespace = ?1 AND name = ?2;

-- name: jobs_using_calendar
-- Jobs that have not ended and whose schedule names the calendar.
SELECT id, lane, kind, state, priority, payload, document, key, next_at, scheduled_at, fired_through, version,
    runs_made, created_at, updated_at, created_by, paused_at, expires_at
FROM jobs INDEXED BY jobs_calendar
WHERE instr(document, '"calendar":') > 0 AND json_extract(document, '$.calendar.name') = ?1 AND state < 4
  AND id > ?2 AND lane IN (SELECT lanes.id FROM lanes WHERE lanes.namespace = ?4)
ORDER BY id LIMIT ?3;

-- name: job_versions
-- The definitions of a recurring job, oldest first.
SELECT version, since, lane, priority, payload, document FROM job_versions WHERE job_id = ?1 ORDER BY version;
