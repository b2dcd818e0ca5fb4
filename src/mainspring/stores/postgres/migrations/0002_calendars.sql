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
