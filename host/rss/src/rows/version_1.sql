-- A subscription, as sealed JSON: what the user says of it, which may hold cookies and passwords, and what happened to
-- it, such as the URL that a web page named, which may hold a key.
CREATE TABLE rss_source (
    id BLOB PRIMARY KEY,
    history BLOB NOT NULL,
    sealed BLOB NOT NULL
) WITHOUT ROWID, STRICT;

-- An item, as sealed JSON: links of a feed often hold the user's passkey.
CREATE TABLE rss_item (
    serial INTEGER PRIMARY KEY,
    source BLOB NOT NULL,
    sealed BLOB NOT NULL
) STRICT;
CREATE INDEX rss_item_source ON rss_item (source);

-- Identifiers of items that are not kept any more, oldest first.
CREATE TABLE rss_pruned (
    position INTEGER PRIMARY KEY,
    source BLOB NOT NULL,
    mark BLOB NOT NULL
) STRICT;
CREATE INDEX rss_pruned_mark ON rss_pruned (source, mark);
