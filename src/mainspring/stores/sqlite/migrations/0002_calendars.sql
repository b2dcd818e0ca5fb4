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
