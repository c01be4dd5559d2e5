-- A job, as sealed JSON: its steps may have passwords of archives.
CREATE TABLE chain_job (
    id INTEGER PRIMARY KEY,
    sealed BLOB NOT NULL
) STRICT;

-- The passwords that are tried on archives, as sealed JSON; one row.
CREATE TABLE chain_passwords (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    sealed BLOB NOT NULL
) STRICT;

-- What stays when jobs are forgotten: the last id, the moment up to which finished tasks were looked at with the tasks of that
-- moment, and the salt of the names of directories.
CREATE TABLE chain_state (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID, STRICT;
