CREATE TABLE daemon_config (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE daemon_state (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE daemon_activity (
    id      INTEGER PRIMARY KEY,
    task    BLOB NOT NULL,
    at_ms   INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    message TEXT NOT NULL,
    status  INTEGER
) STRICT;

CREATE INDEX daemon_activity_of_task ON daemon_activity (task, id);
