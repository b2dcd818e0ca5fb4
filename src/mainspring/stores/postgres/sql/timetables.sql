-- Calendars by name, and definitions by time.

-- name: calendar_marks
-- Which state of each calendar is in force.
SELECT c.namespace, c.name, c.version, c.updated_at FROM mainspring.calendars c

-- name: calendars
-- Calendars of a namespace: all, or those named.
SELECT c.namespace, c.name, c.version, c.updated_at, c.document
  FROM mainspring.calendars c
 WHERE c.namespace = $1 AND ($2::text[] IS NULL OR c.name = ANY ($2::text[]))
 ORDER BY c.name

-- name: lock_calendar
-- One writer at a time, also where there is no row yet.
SELECT pg_advisory_xact_lock(hashtext('mainspring.calendar'), hashtext($1 || '/' || $2))

-- name: put_calendar
-- The calendar as it is from now on; who asks has seen the version.
INSERT INTO mainspring.calendars (namespace, name, version, updated_at, document) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (namespace, name) DO UPDATE SET version = $3, updated_at = $4, document = $5

-- name: delete_calendar
-- Nobody uses it.
DELETE FROM mainspring.calendars c WHERE c.namespace = $1 AND c.name = $2

-- name: jobs_using_calendar
-- Jobs that have not ended and whose schedule names the calendar.
SELECT v.*
  FROM mainspring.future_jobs v
 WHERE strpos(v.document, '"calendar":') > 0 AND (v.document::jsonb -> 'calendar' ->> 'name') = $1
   AND v.state < 4 AND v.namespace = $2 AND ($3::uuid IS NULL OR v.id > $3)
 ORDER BY v.id
 LIMIT $4

-- name: job_versions
-- The definitions of a recurring job, oldest first.
SELECT j.version, j.since, j.lane, j.priority, j.payload, j.document
  FROM mainspring.job_versions j
 WHERE j.job_id = $1
 ORDER BY j.version

-- name: drop_versions
-- Deleted jobs have no past definitions either.
DELETE FROM mainspring.job_versions j WHERE j.job_id = ANY ($1::uuid[])
