-- Values that the agent keeps for the device link: its key, the keys of paired devices, downloads that wait for them.
CREATE TABLE daemon_link (
    kind    TEXT NOT NULL,
    key     TEXT NOT NULL,
    sealed  BLOB NOT NULL,
    -- Unix seconds from which on the row is not needed.
    expires INTEGER,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX daemon_link_expires ON daemon_link (expires) WHERE expires IS NOT NULL;
