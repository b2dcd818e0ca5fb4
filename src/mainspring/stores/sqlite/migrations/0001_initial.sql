-- The three tenses (jobs, runs, history) and the small tables beside them.
-- Ids are BLOBs of 16 bytes, instants and spans whole microseconds. Wide texts stand last in a row, so that reading
-- the numbers before them never touches overflow pages.

CREATE TABLE lanes (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    queue TEXT NOT NULL,
    task TEXT NOT NULL,
    region TEXT NOT NULL,
    placement TEXT NOT NULL,
    UNIQUE (namespace, task, queue, region, placement)
);

CREATE TABLE tasks (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    signature TEXT,
    defaults TEXT,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

CREATE TABLE queues (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,
    limits TEXT,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

-- Future.
CREATE TABLE jobs (
    id BLOB NOT NULL UNIQUE,
    lane INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    next_at INTEGER,
    scheduled_at INTEGER,
    fired_through INTEGER NOT NULL,
    version INTEGER NOT NULL,
    runs_made INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    paused_at INTEGER,
    expires_at INTEGER,
    key TEXT,
    created_by TEXT,
    reason TEXT,
    document TEXT,
    payload BLOB NOT NULL
);

CREATE INDEX jobs_due ON jobs (scheduled_at) WHERE state IN (0, 2);

CREATE TABLE job_versions (
    job_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    since INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    document TEXT,
    payload BLOB NOT NULL,
    PRIMARY KEY (job_id, version)
);

-- Present. Everything that a claim needs is in the row.
CREATE TABLE runs (
    id BLOB NOT NULL UNIQUE,
    job_id BLOB NOT NULL,
    lane INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    ready_at INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    fence INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    spent INTEGER NOT NULL DEFAULT 0,
    deaths INTEGER NOT NULL DEFAULT 0,
    worker BLOB,
    started_at INTEGER,
    lateness INTEGER,
    expires_at INTEGER,
    cancel_requested_at INTEGER,
    catch_up INTEGER NOT NULL DEFAULT 0,
    stands_for_job INTEGER NOT NULL DEFAULT 1,
    replaces BLOB,
    origin TEXT NOT NULL DEFAULT 'submit',
    reason TEXT,
    key TEXT,
    created_by TEXT,
    progress TEXT,
    document TEXT,
    payload BLOB NOT NULL,
    result BLOB,
    error TEXT,
    attempts TEXT
);

CREATE INDEX runs_claim ON runs (lane, priority DESC, ready_at, id) WHERE state = 0;
CREATE INDEX runs_running ON runs (worker, lane) WHERE worker IS NOT NULL;
CREATE INDEX runs_aside ON runs (state, ready_at, lane) WHERE state > 1;
CREATE INDEX runs_of_job ON runs (job_id, id) WHERE job_id <> id;
CREATE INDEX runs_expiring ON runs (expires_at) WHERE expires_at IS NOT NULL AND attempt = 0;
CREATE INDEX runs_beside ON runs (job_id) WHERE stands_for_job = 0 AND kind < 2;
CREATE INDEX runs_cancelling ON runs (worker) WHERE cancel_requested_at IS NOT NULL;

-- Past. Rows are appended as runs end, so the order of the rowid is the order of the end: what is over its time is
-- dropped from the head without an index. The id is not unique: a run may not be refused its end because of a repeat.
CREATE TABLE history (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    job_id BLOB NOT NULL,
    lane INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    ready_at INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    fence INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    spent INTEGER NOT NULL DEFAULT 0,
    deaths INTEGER NOT NULL DEFAULT 0,
    worker BLOB,
    started_at INTEGER,
    lateness INTEGER,
    expires_at INTEGER,
    cancel_requested_at INTEGER,
    catch_up INTEGER NOT NULL DEFAULT 0,
    stands_for_job INTEGER NOT NULL DEFAULT 1,
    count INTEGER NOT NULL DEFAULT 1,
    replaces BLOB,
    origin TEXT NOT NULL DEFAULT 'submit',
    reason TEXT,
    key TEXT,
    created_by TEXT,
    progress TEXT,
    document TEXT,
    payload BLOB NOT NULL,
    result BLOB,
    error TEXT,
    attempts TEXT
);

CREATE INDEX history_id ON history (id);
CREATE INDEX history_of_job ON history (job_id, id) WHERE job_id <> id;
CREATE INDEX history_beside ON history (job_id) WHERE stands_for_job = 0 AND kind < 2;
CREATE INDEX history_not_completed ON history (state, id) WHERE state <> 10;
CREATE INDEX history_slow ON history (id) WHERE finished_at - created_at > 86400000000;

-- Both tenses with their columns in one order, which is that of the program's `Run`.
CREATE VIEW live_runs AS SELECT
    rowid AS number,
    id, job_id, lane, kind, state, priority, payload, document, ready_at, scheduled_at, created_at, fence,
    attempt, spent, deaths, reason, key, origin, replaces, worker, started_at, NULL AS finished_at, lateness,
    expires_at, cancel_requested_at, progress, result, error, attempts, 1 AS count, catch_up, stands_for_job,
    created_by
FROM runs;

CREATE VIEW past_runs AS SELECT
    number,
    id, job_id, lane, kind, state, priority, payload, document, ready_at, scheduled_at, created_at, fence,
    attempt, spent, deaths, reason, key, origin, replaces, worker, started_at, finished_at, lateness,
    expires_at, cancel_requested_at, progress, result, error, attempts, count, catch_up, stands_for_job,
    created_by
FROM history;

-- Which failed runs wait for a person; upkeep leaves their rows of history alone.
CREATE TABLE dead_letters (
    id BLOB NOT NULL PRIMARY KEY,
    failed_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE uniques (
    namespace TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    job_id BLOB NOT NULL,
    PRIMARY KEY (namespace, kind, key)
) WITHOUT ROWID;

CREATE TABLE workers (
    id BLOB NOT NULL PRIMARY KEY,
    namespace TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    queues TEXT NOT NULL,
    slots INTEGER NOT NULL,
    version TEXT NOT NULL,
    lease INTEGER NOT NULL,
    keeper BLOB,
    started_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL,
    beat INTEGER NOT NULL DEFAULT 0,
    draining INTEGER NOT NULL DEFAULT 0,
    lost_at INTEGER,
    evidence TEXT,
    culprit BLOB
) WITHOUT ROWID;

CREATE TABLE schedulers (
    id BLOB NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    beat_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE idempotency (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    begun_at INTEGER NOT NULL,
    status INTEGER,
    body BLOB,
    PRIMARY KEY (namespace, key)
);

CREATE TABLE logs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    level TEXT NOT NULL,
    message TEXT NOT NULL,
    fields TEXT
);

CREATE INDEX logs_of_run ON logs (run_id, number);

-- Calendars by name, which schedules share, and the way from a calendar to the jobs that use it.

CREATE TABLE calendars (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (namespace, name)
);

-- Only jobs that name one are in it.
CREATE INDEX jobs_calendar ON jobs (json_extract(document, '$.calendar.name'), id)
WHERE instr(document, '"calendar":') > 0;
