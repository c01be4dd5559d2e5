-- Deleted tasks that a subscription created, until the subscription has noted that they were deleted.
CREATE TABLE deleted_feed_task (id BLOB PRIMARY KEY) WITHOUT ROWID, STRICT;
