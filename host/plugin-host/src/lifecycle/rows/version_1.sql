-- A plugin: which releases of it there are, what the user agreed to, and whether it is switched on.
CREATE TABLE plugin (
    identity TEXT PRIMARY KEY,
    record TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What the user has set; `sealed` holds the secret values.
CREATE TABLE plugin_setting (
    identity TEXT PRIMARY KEY,
    plain TEXT NOT NULL,
    sealed BLOB
) STRICT, WITHOUT ROWID;

-- What a plugin remembers.
CREATE TABLE plugin_storage (
    identity TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    expires_ms INTEGER,
    PRIMARY KEY (identity, key)
) STRICT, WITHOUT ROWID;
