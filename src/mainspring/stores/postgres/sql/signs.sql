-- Signs of life and what a connection says of itself.

-- name: hold_sign
-- Waits for nobody: the lock of a session that has just died falls soon, and it may be taken beside it.
SELECT pg_catalog.pg_advisory_lock_shared($1::bigint)

-- name: signs
-- Which of these locks are held, and by what server and session that was seen.
SELECT concat(extract(epoch FROM pg_catalog.pg_postmaster_start_time())::text, '/', pg_catalog.pg_backend_pid()::text, '/',
              (SELECT extract(epoch FROM a.backend_start)::text FROM pg_catalog.pg_stat_activity a
                WHERE a.pid = pg_catalog.pg_backend_pid())) AS epoch,
       l.number
  FROM (SELECT 1) AS always
  LEFT JOIN (
    SELECT DISTINCT (held.classid::bigint << 32) | held.objid::bigint AS number
      FROM pg_catalog.pg_locks held
     WHERE held.locktype = 'advisory' AND held.objsubid = 1 AND held.granted
       AND held.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
       AND ((held.classid::bigint << 32) | held.objid::bigint) = ANY ($1::bigint[])) AS l ON true

-- name: backend
-- Which backend really answers: behind a pooler it is not the one that the connection was told of.
SELECT pg_catalog.pg_backend_pid()
