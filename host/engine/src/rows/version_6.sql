-- What was used of the daily allowance of an account, and what its site allows. `day` is in days since the Unix epoch.
CREATE TABLE account (
    identity TEXT NOT NULL,
    slot TEXT NOT NULL,
    account TEXT NOT NULL,
    day INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    downloads INTEGER NOT NULL,
    parallel INTEGER,
    daily_bytes INTEGER,
    daily_downloads INTEGER,
    PRIMARY KEY (identity, slot, account)
) WITHOUT ROWID, STRICT;
