-- The three tenses (jobs, runs, history) and the small tables beside them.
-- Every table is written with its schema, `mainspring`, which the migrator replaces by the schema of the URL.

-- The one clock of everything: microseconds since 1970 in UTC, or the instant that a test hands in.
CREATE FUNCTION mainspring.instant(given bigint) RETURNS bigint
    LANGUAGE sql VOLATILE PARALLEL SAFE
    AS $$ SELECT coalesce(given, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) $$;

CREATE TABLE mainspring.lanes (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace text NOT NULL,
    task text NOT NULL,
    queue text NOT NULL,
    region text NOT NULL,
    placement text NOT NULL,
    UNIQUE (namespace, task, queue, region, placement)
);

CREATE TABLE mainspring.tasks (
    namespace text NOT NULL,
    name text NOT NULL,
    signature text,
    defaults text,
    seen_at bigint NOT NULL,
    PRIMARY KEY (namespace, name)
);

CREATE TABLE mainspring.queues (
    namespace text NOT NULL,
    name text NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    limits text,
    PRIMARY KEY (namespace, name)
);

-- Future. The shard is the last byte of the id; a leaf holds sixteen of the 256.
CREATE TABLE mainspring.jobs (
    id uuid NOT NULL,
    next_at bigint,
    scheduled_at bigint,
    fired_through bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    paused_at bigint,
    expires_at bigint,
    lane integer NOT NULL,
    version integer NOT NULL,
    runs_made integer NOT NULL,
    shard smallint NOT NULL,
    kind smallint NOT NULL,
    state smallint NOT NULL,
    priority smallint NOT NULL,
    payload bytea NOT NULL,
    document text,
    key text,
    created_by text,
    PRIMARY KEY (id, shard)
) PARTITION BY RANGE (shard);

CREATE INDEX jobs_due ON mainspring.jobs (shard, scheduled_at)
    WHERE state IN (0, 2) AND scheduled_at IS NOT NULL;
CREATE INDEX jobs_aside ON mainspring.jobs (state) WHERE state IN (1, 3, 4, 5);

DO $$
BEGIN
    FOR leaf IN 0..15 LOOP
        EXECUTE format(
            'CREATE TABLE mainspring.jobs_%s PARTITION OF mainspring.jobs FOR VALUES FROM (%s) TO (%s)
             WITH (fillfactor = 85, autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_scale_factor = 0.02,
                   autovacuum_vacuum_threshold = 5000)',
            lpad(leaf::text, 2, '0'), leaf * 16, leaf * 16 + 16);
    END LOOP;
END $$;

CREATE TABLE mainspring.job_versions (
    job_id uuid NOT NULL,
    version integer NOT NULL,
    since bigint NOT NULL,
    lane integer NOT NULL,
    priority smallint NOT NULL,
    payload bytea NOT NULL,
    document text,
    PRIMARY KEY (job_id, version)
);

-- Present. Small and hot: everything that a claim needs is in the row.
CREATE TABLE mainspring.runs (
    id uuid NOT NULL,
    job_id uuid NOT NULL,
    ready_at bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    lateness bigint,
    expires_at bigint,
    cancel_requested_at bigint,
    fence bigint NOT NULL DEFAULT 0,
    lane integer NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    spent integer NOT NULL DEFAULT 0,
    deaths integer NOT NULL DEFAULT 0,
    kind smallint NOT NULL,
    state smallint NOT NULL,
    priority smallint NOT NULL,
    catch_up boolean NOT NULL DEFAULT false,
    stands_for_job boolean NOT NULL DEFAULT true,
    worker uuid,
    replaces uuid,
    payload bytea NOT NULL,
    origin text NOT NULL DEFAULT 'submit',
    document text,
    key text,
    reason text,
    progress text,
    error text,
    attempts text,
    created_by text,
    CONSTRAINT runs_pkey PRIMARY KEY (id)
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 10000
);

CREATE INDEX runs_claim ON mainspring.runs (lane, priority DESC, ready_at, id) WHERE state = 0;
CREATE INDEX runs_running ON mainspring.runs (worker) WHERE state = 1;
CREATE INDEX runs_of_job ON mainspring.runs (job_id, id) WHERE job_id <> id;
CREATE INDEX runs_retrying ON mainspring.runs (ready_at) WHERE state = 3;
CREATE INDEX runs_aside ON mainspring.runs (lane, state) WHERE state IN (2, 3, 4, 5);
CREATE INDEX runs_expiring ON mainspring.runs (expires_at)
    WHERE expires_at IS NOT NULL AND attempt = 0 AND state IN (0, 2);

-- Past. One row a finished run or skipped occurrence, in partitions of a day (UTC) of its end.
CREATE TABLE mainspring.history (
    id uuid NOT NULL,
    job_id uuid NOT NULL,
    ready_at bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint NOT NULL,
    lateness bigint,
    expires_at bigint,
    cancel_requested_at bigint,
    fence bigint NOT NULL,
    lane integer NOT NULL,
    attempt integer NOT NULL,
    spent integer NOT NULL,
    deaths integer NOT NULL,
    count integer NOT NULL DEFAULT 1,
    kind smallint NOT NULL,
    state smallint NOT NULL,
    priority smallint NOT NULL,
    catch_up boolean NOT NULL,
    stands_for_job boolean NOT NULL,
    worker uuid,
    replaces uuid,
    payload bytea NOT NULL,
    origin text NOT NULL,
    document text,
    key text,
    reason text,
    progress text,
    error text,
    attempts text,
    created_by text,
    result bytea
) PARTITION BY RANGE (finished_at);

CREATE INDEX history_id ON mainspring.history (id);
CREATE INDEX history_of_job ON mainspring.history (job_id, id) WHERE job_id <> id;
CREATE INDEX history_time ON mainspring.history USING brin (finished_at) WITH (pages_per_range = 32);
CREATE INDEX history_not_completed ON mainspring.history (state, finished_at) WHERE state <> 10;

CREATE TABLE mainspring.history_default PARTITION OF mainspring.history DEFAULT;

-- Failed runs, whole, so that no dropped partition loses one.
CREATE TABLE mainspring.dead_letters (LIKE mainspring.history INCLUDING DEFAULTS, PRIMARY KEY (id));

CREATE SEQUENCE mainspring.log_numbers AS bigint CACHE 1;

CREATE TABLE mainspring.logs (
    number bigint NOT NULL DEFAULT nextval('mainspring.log_numbers'),
    run_id uuid NOT NULL,
    at bigint NOT NULL,
    attempt integer NOT NULL,
    level text NOT NULL,
    message text NOT NULL,
    fields text
) PARTITION BY RANGE (at);

CREATE INDEX logs_of_run ON mainspring.logs (run_id, number);

CREATE TABLE mainspring.logs_default PARTITION OF mainspring.logs DEFAULT;

-- The first days; upkeep makes the following ones ahead of their time.
DO $$
DECLARE
    day bigint := 86400000000;
    first bigint := mainspring.instant(NULL) / day;
    parent text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['history', 'logs'] LOOP
        FOR number IN first..first + 3 LOOP
            EXECUTE format(
                'CREATE TABLE mainspring.%I PARTITION OF mainspring.%I FOR VALUES FROM (%s) TO (%s)',
                parent || '_' || to_char(to_timestamp(number * 86400) AT TIME ZONE 'UTC', 'YYYYMMDD'),
                parent, number * day, (number + 1) * day);
        END LOOP;
    END LOOP;
END $$;

-- What may exist once among the living: an index cannot span jobs and runs.
CREATE TABLE mainspring.uniques (
    namespace text NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (namespace, kind, key)
) WITH (autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE TABLE mainspring.workers (
    id uuid PRIMARY KEY,
    namespace text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    queues text[] NOT NULL,
    slots integer NOT NULL,
    version text NOT NULL,
    lease bigint NOT NULL,
    keeper uuid,
    started_at bigint NOT NULL,
    beat_at bigint NOT NULL,
    beat bigint NOT NULL DEFAULT 0,
    draining boolean NOT NULL DEFAULT false,
    lost_at bigint,
    evidence text,
    culprit uuid
) WITH (fillfactor = 50, autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_threshold = 500);

CREATE INDEX workers_lost ON mainspring.workers (lost_at) WHERE lost_at IS NOT NULL;

CREATE TABLE mainspring.schedulers (
    id uuid PRIMARY KEY,
    host text NOT NULL,
    beat_at bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

CREATE TABLE mainspring.idempotency (
    namespace text NOT NULL,
    key text NOT NULL,
    body_hash bytea NOT NULL,
    created_at bigint NOT NULL,
    begun_at bigint NOT NULL,
    status integer,
    body bytea,
    PRIMARY KEY (namespace, key)
);

CREATE INDEX idempotency_age ON mainspring.idempotency (created_at);

-- What readers see: lanes spelled out, and a queued run whose task nobody registered shown as held.
CREATE VIEW mainspring.live_runs AS
    SELECT r.id, r.job_id, l.namespace, l.queue, l.task, l.region, l.placement, r.kind,
           CASE WHEN r.state = 0 AND t.name IS NULL THEN 2::smallint ELSE r.state END AS state,
           r.priority, r.payload, r.document, r.ready_at, r.scheduled_at, r.created_at, r.fence, r.attempt, r.spent,
           r.deaths,
           CASE WHEN r.state = 0 AND t.name IS NULL THEN 'no_worker' ELSE r.reason END AS reason,
           r.key, r.origin, r.replaces, r.worker, r.started_at, NULL::bigint AS finished_at, r.lateness, r.expires_at,
           r.cancel_requested_at, r.progress, NULL::bytea AS result, r.error, r.attempts, 1 AS count, r.catch_up,
           r.stands_for_job, r.created_by, r.lane, r.state AS stored_state
      FROM mainspring.runs r
      JOIN mainspring.lanes l ON l.id = r.lane
      LEFT JOIN mainspring.tasks t ON t.namespace = l.namespace AND t.name = l.task;

CREATE VIEW mainspring.past_runs AS
    SELECT h.id, h.job_id, l.namespace, l.queue, l.task, l.region, l.placement, h.kind, h.state,
           h.priority, h.payload, h.document, h.ready_at, h.scheduled_at, h.created_at, h.fence, h.attempt, h.spent,
           h.deaths, h.reason, h.key, h.origin, h.replaces, h.worker, h.started_at, h.finished_at, h.lateness,
           h.expires_at, h.cancel_requested_at, h.progress, h.result, h.error, h.attempts, h.count, h.catch_up,
           h.stands_for_job, h.created_by, h.lane, h.state AS stored_state
      FROM mainspring.history h
      JOIN mainspring.lanes l ON l.id = h.lane;

CREATE VIEW mainspring.dead_runs AS
    SELECT h.id, h.job_id, l.namespace, l.queue, l.task, l.region, l.placement, h.kind, h.state,
           h.priority, h.payload, h.document, h.ready_at, h.scheduled_at, h.created_at, h.fence, h.attempt, h.spent,
           h.deaths, h.reason, h.key, h.origin, h.replaces, h.worker, h.started_at, h.finished_at, h.lateness,
           h.expires_at, h.cancel_requested_at, h.progress, h.result, h.error, h.attempts, h.count, h.catch_up,
           h.stands_for_job, h.created_by, h.lane, h.state AS stored_state
      FROM mainspring.dead_letters h
      JOIN mainspring.lanes l ON l.id = h.lane;

CREATE VIEW mainspring.future_jobs AS
    SELECT j.id, l.namespace, l.queue, l.task, l.region, l.placement, j.kind, j.state, j.priority, j.payload,
           j.document, j.key, j.next_at, j.scheduled_at, j.fired_through, j.version, j.runs_made, j.created_at,
           j.updated_at, j.created_by, j.paused_at, j.expires_at, j.shard, j.lane
      FROM mainspring.jobs j
      JOIN mainspring.lanes l ON l.id = j.lane;

-- Calendars by name, which schedules share, and the way from a calendar to the jobs that use it.

CREATE TABLE mainspring.calendars (
    namespace text NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    updated_at bigint NOT NULL,
    document text NOT NULL,
    PRIMARY KEY (namespace, name)
);

-- Only jobs that name one are in it: it is empty when it is made.
CREATE INDEX jobs_calendar ON mainspring.jobs ((document::jsonb -> 'calendar' ->> 'name'), id)
    WHERE strpos(document, '"calendar":') > 0;
