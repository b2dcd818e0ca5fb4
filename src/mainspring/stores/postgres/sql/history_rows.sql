-- Records of what never was a live run.

-- name: add_history
-- Occurrences that did not run, and one-time jobs that were cancelled before they did.
INSERT INTO mainspring.history (
    id, job_id, ready_at, scheduled_at, created_at, started_at, finished_at, lateness, expires_at,
    cancel_requested_at, fence, lane, attempt, spent, deaths, count, kind, state, priority, catch_up,
    stands_for_job, worker, replaces, payload, origin, document, key, reason, progress, error, attempts,
    created_by, result)
SELECT k.id, k.job_id, k.scheduled_at, k.scheduled_at, k.created_at, NULL, $13, NULL, NULL, NULL, 0, k.lane, 0, 0, 0,
       k.count, k.kind, k.state, k.priority, false, k.kind <> 2, NULL, NULL, k.payload, 'schedule', k.document, k.key,
       k.reason, NULL, NULL, NULL, k.created_by, NULL
  FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::integer[], $6::integer[], $7::smallint[],
              $8::smallint[], $9::smallint[], $10::bytea[], $11::text[], $12::text[], $14::text[], $15::text[])
    AS k (id, job_id, scheduled_at, created_at, lane, count, kind, state, priority, payload, document, key, reason,
          created_by)
