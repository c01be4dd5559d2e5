-- What a task uploads, as JSON; only for what can be seeded.
ALTER TABLE task ADD COLUMN seeding TEXT;
