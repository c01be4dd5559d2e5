-- Of an entry about one of several sources of a task: its URL as it is shown, and the reason without that.
ALTER TABLE daemon_activity ADD COLUMN source TEXT;
ALTER TABLE daemon_activity ADD COLUMN reason TEXT;
