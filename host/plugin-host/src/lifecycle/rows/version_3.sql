-- A source of the market: where it is and how refreshing it went, what is believed of it, and the two files that it gave.
CREATE TABLE market_source (
    id TEXT PRIMARY KEY,
    record TEXT NOT NULL,
    head TEXT NOT NULL,
    plugins BLOB,
    revocations BLOB
) STRICT, WITHOUT ROWID;
