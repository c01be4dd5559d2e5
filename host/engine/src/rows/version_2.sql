-- What was begun with the files of a task and a crash may have cut short, as JSON.
ALTER TABLE task ADD COLUMN unsettled TEXT;
