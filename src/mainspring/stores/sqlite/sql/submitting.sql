-- Jobs enter.

-- name: add_immediate_run
-- An immediate job is born as a run with its id.
INSERT INTO runs (
    id, job_id, lane, kind, state, priority, ready_at, scheduled_at, created_at, expires_at, reason, key, created_by,
    document, payload)
VALUES (?1, ?1, ?2, 0, 0, ?3, ?4, ?5, ?4, ?6, ?7, ?8, ?9, ?10, ?11);

-- name: add_job
-- A job whose time has not come.
INSERT INTO jobs (
    id, lane, kind, state, priority, next_at, scheduled_at, fired_through, version, created_at, updated_at,
    expires_at, key, created_by, reason, document, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, ?8, ?8, ?9, ?10, ?11, ?12, ?13, ?14);

-- name: add_version
-- The definition of a recurring job as it is from now on.
INSERT OR REPLACE INTO job_versions (job_id, version, since, lane, priority, document, payload)
SELECT id, version, updated_at, lane, priority, document, payload FROM jobs WHERE id = ?1;

-- name: taken_ids
-- Which of these ids are live already.
SELECT substr(?1, place.key * 16 + 1, 16) AS id FROM json_each(?2) AS place
WHERE EXISTS (SELECT 1 FROM runs WHERE runs.id = substr(?1, place.key * 16 + 1, 16))
   OR EXISTS (SELECT 1 FROM jobs WHERE jobs.id = substr(?1, place.key * 16 + 1, 16));

-- name: stored_ids
-- Which of these ids an earlier send left behind, live or ended.
SELECT wanted.id FROM (SELECT substr(?1, place.key * 16 + 1, 16) AS id FROM json_each(?2) AS place) AS wanted
WHERE EXISTS (SELECT 1 FROM runs WHERE runs.id = wanted.id)
   OR EXISTS (SELECT 1 FROM jobs WHERE jobs.id = wanted.id)
   OR EXISTS (SELECT 1 FROM history WHERE history.id = wanted.id)
   OR EXISTS (SELECT 1 FROM runs WHERE runs.job_id = wanted.id AND runs.job_id <> runs.id)
   OR EXISTS (SELECT 1 FROM history WHERE history.job_id = wanted.id AND history.job_id <> history.id);

-- name: key_holder
-- The live job that has the key.
SELECT job_id FROM uniques WHERE namespace = ?1 AND kind = 'key' AND key = ?2;

-- name: take_key
-- The job holds the key from now on; the one who holds it keeps it.
INSERT INTO uniques (namespace, kind, key, job_id) VALUES (?1, 'key', ?2, ?3) ON CONFLICT DO NOTHING;

-- name: free_key
-- The job holds the key no longer.
DELETE FROM uniques WHERE namespace = ?1 AND kind = 'key' AND key = ?2 AND job_id = ?3;
