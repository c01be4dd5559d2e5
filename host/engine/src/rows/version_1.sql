-- One row a task. `rare` holds what few tasks have, as JSON; `sealed` what must not be read, as sealed JSON.
CREATE TABLE task (
    serial INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    phase INTEGER NOT NULL,
    failure TEXT,
    retry_at INTEGER,
    queue TEXT NOT NULL,
    task_group BLOB,
    queue_order INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    completed_at INTEGER,
    done_bytes INTEGER NOT NULL,
    total_bytes INTEGER,
    save_dir TEXT NOT NULL,
    path TEXT,
    url TEXT NOT NULL,
    file_name TEXT,
    segments INTEGER NOT NULL,
    rare TEXT,
    sealed BLOB
) STRICT;

-- Files of deleted tasks that are still to be removed.
CREATE TABLE leaving (
    serial INTEGER NOT NULL,
    path TEXT NOT NULL
) STRICT;
CREATE INDEX leaving_serial ON leaving (serial);

CREATE TABLE queue (
    id TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    is_running INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT;

CREATE TABLE task_group (
    id BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    source_url TEXT NOT NULL,
    save_dir TEXT,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE settings (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    revision INTEGER NOT NULL,
    record TEXT NOT NULL,
    sealed BLOB
) STRICT;

CREATE TABLE site (
    site TEXT PRIMARY KEY,
    user TEXT NOT NULL,
    sealed BLOB NOT NULL
) STRICT;
