-- name: create
-- The least a queue with history and fencing can be: what is held, a claim index, what has ended, found by id and time.
CREATE TABLE {schema}.floor_runs (
    id uuid PRIMARY KEY,
    lane integer NOT NULL,
    state smallint NOT NULL DEFAULT 0,
    priority smallint NOT NULL DEFAULT 50,
    fence integer NOT NULL DEFAULT 0,
    attempt integer NOT NULL DEFAULT 0,
    ready_at bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    worker uuid,
    payload bytea NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX floor_claim ON {schema}.floor_runs (lane, priority DESC, ready_at, id) WHERE state = 0;
CREATE TABLE {schema}.floor_history (
    id uuid NOT NULL,
    lane integer NOT NULL,
    status smallint NOT NULL,
    priority smallint NOT NULL,
    fence integer NOT NULL,
    attempt integer NOT NULL,
    ready_at bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint NOT NULL,
    worker uuid,
    payload bytea NOT NULL,
    result bytea
);
CREATE INDEX floor_history_id ON {schema}.floor_history (id);
CREATE INDEX floor_history_time ON {schema}.floor_history USING brin (finished_at)

-- name: fill
-- Runs to drain, ids in the order of time.
INSERT INTO {schema}.floor_runs (id, lane, ready_at, scheduled_at, created_at, payload)
SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1, $2, $2, $2, '{{}}'::bytea
FROM generate_series(1, $1::bigint) AS n

-- name: settle
-- Statistics for the planner, as autovacuum would leave them; hint bits are set on the way.
VACUUM ANALYZE {schema}.floor_runs

-- name: claim
-- One statement, one commit: heads of the line, skipping what others hold.
WITH head AS MATERIALIZED (
    SELECT ctid FROM {schema}.floor_runs WHERE lane = 1 AND state = 0
    ORDER BY priority DESC, ready_at, id LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE {schema}.floor_runs r SET state = 1, fence = fence + 1, attempt = attempt + 1, worker = $2, started_at = $3
WHERE r.ctid = ANY (ARRAY(SELECT ctid FROM head)) AND r.state = 0
RETURNING r.id, r.fence, r.attempt, r.payload, r.scheduled_at

-- name: finish
-- One statement, one commit: a stale fence deletes nothing and so records nothing; each run has its own outcome and result.
WITH ended AS (
    DELETE FROM {schema}.floor_runs r
    USING unnest($1::uuid[], $2::integer[], $3::smallint[], $4::bytea[]) AS k (id, fence, status, result)
    WHERE r.id = k.id AND r.fence = k.fence AND r.state = 1
    RETURNING r.id, r.lane, k.status, r.priority, r.fence, r.attempt, r.ready_at, r.scheduled_at, r.created_at,
              r.started_at, r.worker, r.payload, k.result
)
INSERT INTO {schema}.floor_history (id, lane, status, priority, fence, attempt, ready_at, scheduled_at, created_at,
                                    started_at, finished_at, worker, payload, result)
SELECT id, lane, status, priority, fence, attempt, ready_at, scheduled_at, created_at, started_at, $5, worker, payload, result
FROM ended RETURNING id

-- name: drop
-- Leaves nothing behind.
DROP TABLE {schema}.floor_runs, {schema}.floor_history
