-- Cookies of sites from a browser's export, as sealed JSON.
CREATE TABLE site_cookies (site TEXT PRIMARY KEY, sealed BLOB NOT NULL) STRICT;

-- What a task waits for, as JSON.
ALTER TABLE task ADD COLUMN wait TEXT;

-- Logins after which tasks are still to be resumed, of those whose wait has the order `until` or a lower one.
CREATE TABLE login (
    identity TEXT NOT NULL,
    slot TEXT NOT NULL,
    account TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (identity, slot, account)
) WITHOUT ROWID, STRICT;
