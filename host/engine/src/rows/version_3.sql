-- What the list of a group leaves out, as JSON.
ALTER TABLE task_group ADD COLUMN left_out TEXT;
