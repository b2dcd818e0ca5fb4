-- The steps of the schema.

-- name: applied
-- The steps of the schema that were applied.
SELECT name, checksum, min_program FROM mainspring.migrations ORDER BY number

-- name: has_migrations
-- Whether there is a schema at all.
SELECT to_regclass('mainspring.migrations') IS NOT NULL

-- name: lock_migrations
-- Two nodes never migrate at the same time; the second finds nothing left to do.
SELECT pg_catalog.pg_advisory_xact_lock(hashtextextended($1, 7301))

-- name: wait_for_migrations
-- Another node's migration may take its time; ours then has nothing left to do.
SET LOCAL lock_timeout = '10min'

-- name: create_schema
-- What the first step needs: the schema and its list of steps.
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS mainspring.migrations (
    number integer PRIMARY KEY,
    name text NOT NULL UNIQUE,
    checksum text NOT NULL,
    min_program integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)

-- name: record_step_by_hand
-- The same in a script that a person runs.
INSERT INTO mainspring.migrations (number, name, checksum, min_program)
VALUES ({number}, '{name}', '{checksum}', {least})

-- name: record_step
-- A step is applied.
INSERT INTO mainspring.migrations (number, name, checksum, min_program) VALUES ($1, $2, $3, $4)
