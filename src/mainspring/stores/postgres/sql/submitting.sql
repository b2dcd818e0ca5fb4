-- Jobs enter: as runs if they are for now, as rows of jobs otherwise.

-- name: instant
-- The store's clock, or the instant handed in.
SELECT mainspring.instant($1)

-- name: submit_now
-- Immediate jobs without a key: born as runs, in one statement.
INSERT INTO mainspring.runs (id, job_id, ready_at, scheduled_at, created_at, expires_at, lane, kind, state, priority,
                             payload, document, reason, created_by)
SELECT k.id, k.id, c.now, coalesce(k.scheduled_at, c.now), c.now, k.expires_at, k.lane, 0, 0, k.priority,
       k.payload, k.document, k.reason, k.created_by
  FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::integer[], $5::smallint[], $6::bytea[], $7::text[],
              $8::text[], $9::text[])
    AS k (id, scheduled_at, expires_at, lane, priority, payload, document, reason, created_by),
       (SELECT mainspring.instant($10) AS now) AS c

-- name: add_runs
-- Runs of every origin; with a repeat, those whose id is there already are left out.
INSERT INTO mainspring.runs (id, job_id, ready_at, scheduled_at, created_at, expires_at, lane, kind, state, priority,
                             catch_up, stands_for_job, replaces, payload, origin, document, key, reason, created_by)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::integer[],
                     $8::smallint[], $9::smallint[], $10::smallint[], $11::boolean[], $12::boolean[], $13::uuid[],
                     $14::bytea[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[])
    ON CONFLICT (id) DO NOTHING
RETURNING id

-- name: add_jobs
-- Delayed and recurring jobs; those whose id is there already are left out.
INSERT INTO mainspring.jobs (id, shard, next_at, scheduled_at, fired_through, created_at, updated_at, expires_at, lane,
                             version, runs_made, kind, state, priority, payload, document, key, created_by)
SELECT k.id, get_byte(uuid_send(k.id), 15), k.next_at, k.scheduled_at, $12, $12, $12, k.expires_at, k.lane, 1, 0,
       k.kind, k.state, k.priority, k.payload, k.document, k.key, k.created_by
  FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::integer[], $6::smallint[], $7::smallint[],
              $8::smallint[], $9::bytea[], $10::text[], $11::text[], $13::text[])
    AS k (id, next_at, scheduled_at, expires_at, lane, kind, state, priority, payload, document, key, created_by)
    ON CONFLICT (id, shard) DO NOTHING
RETURNING id

-- name: add_versions
-- The definition from this instant on, of recurring jobs.
INSERT INTO mainspring.job_versions (job_id, version, since, lane, priority, payload, document)
SELECT j.id, j.version, $2, j.lane, j.priority, j.payload, j.document
  FROM unnest($1::uuid[]) AS k (id)
  JOIN mainspring.jobs j ON (j.id = k.id) AND j.shard = get_byte(uuid_send(k.id), 15)::smallint
 WHERE j.kind = 2
    ON CONFLICT (job_id, version) DO NOTHING

-- name: take_keys
-- Keys in their order; one that is held by a living job is not taken.
INSERT INTO mainspring.uniques (namespace, kind, key, job_id)
SELECT k.namespace, 'key', k.key, k.job_id
  FROM unnest($1::text[], $2::text[], $3::uuid[]) AS k (namespace, key, job_id)
 ORDER BY k.namespace, k.key
    ON CONFLICT (namespace, kind, key) DO NOTHING
RETURNING job_id

-- name: holders
-- Who holds these keys.
SELECT u.key, u.job_id
  FROM mainspring.uniques u
 WHERE u.namespace = $1 AND u.kind = 'key' AND u.key = ANY ($2::text[])

-- name: free_keys
-- Keys that these jobs hold.
DELETE FROM mainspring.uniques u
 USING unnest($1::text[], $2::text[], $3::uuid[]) AS k (namespace, key, job_id)
 WHERE u.namespace = k.namespace AND u.kind = 'key' AND u.key = k.key AND u.job_id = k.job_id

-- name: sent_before
-- Ids of an earlier send: live, or ended since. Asked after the insert, so that a run that ends meanwhile is seen.
SELECT k.id
  FROM unnest($1::uuid[]) AS k (id)
 WHERE EXISTS (SELECT 1 FROM mainspring.jobs j
                WHERE (j.id = k.id) AND j.shard = get_byte(uuid_send(k.id), 15)::smallint AND NOT k.id = ANY ($3))
    OR EXISTS (SELECT 1 FROM mainspring.runs r WHERE (r.id = k.id) AND NOT k.id = ANY ($3))
    OR EXISTS (SELECT 1 FROM mainspring.runs r WHERE (r.job_id = k.id) AND r.job_id <> r.id)
    OR EXISTS (SELECT 1 FROM mainspring.history h WHERE (h.id = k.id) AND h.finished_at >= $2)
    OR EXISTS (SELECT 1 FROM mainspring.history h WHERE (h.job_id = k.id) AND h.job_id <> h.id AND h.finished_at >= $2)

-- name: withdraw_runs
-- Repeats that turned out to have been stored before.
DELETE FROM mainspring.runs WHERE id = ANY ($1::uuid[])

-- name: withdraw_jobs
-- Repeats of delayed and recurring jobs that have fired since.
DELETE FROM mainspring.jobs j
 USING unnest($1::uuid[]) AS k (id)
 WHERE (j.id = k.id) AND j.shard = get_byte(uuid_send(k.id), 15)::smallint
