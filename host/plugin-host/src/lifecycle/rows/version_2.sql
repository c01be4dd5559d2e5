-- What plugins use and never read, sealed: secrets that were taken out of responses, and the cookies of their sites.
CREATE TABLE plugin_secret (
    identity TEXT NOT NULL,
    account TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (identity, account, kind, name)
) STRICT, WITHOUT ROWID;
