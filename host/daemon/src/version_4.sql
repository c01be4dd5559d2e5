ALTER TABLE daemon_activity ADD COLUMN error_kind TEXT;
