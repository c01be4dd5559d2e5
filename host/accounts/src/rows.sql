-- An account that a plugin is logged in to: one per slot of its manifest. Its secrets are rows of plugin_secret whose
-- account is the slot.
CREATE TABLE plugin_account (
    identity TEXT NOT NULL,
    slot TEXT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (identity, slot)
) STRICT, WITHOUT ROWID;

-- A plugin that was uninstalled while its accounts were kept, and the author whose installation gets them back.
CREATE TABLE plugin_kept (
    identity TEXT NOT NULL PRIMARY KEY,
    author TEXT NOT NULL
) STRICT, WITHOUT ROWID;
