-- Retries that plugins asked for since the task was last resumed.
ALTER TABLE task ADD COLUMN asked_retries INTEGER NOT NULL DEFAULT 0;
