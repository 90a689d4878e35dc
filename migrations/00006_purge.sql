-- What became of attempts to delete an object's bytes.
--
-- compatible_from stays as it is: an older program's collector looks at purge_after alone, and so tries again at every pass
-- what it could wait with; record_purge does the rest for it too.

-- +goose Up
ALTER TABLE object
    -- from when a delete that failed is tried again, and what was said of the last one
    ADD retry_at     timestamptz,
    ADD purge_error  text,
    ADD CONSTRAINT failure_is_whole CHECK (num_nulls(retry_at, purge_error) IN (0, 2));
-- What a pass may delete now, in its order. object_to_purge, by purge_after, is for those who ask since when something should be gone
-- (what is overdue), and for the collector of an older program.
CREATE INDEX object_next_delete ON object (coalesce(retry_at, purge_after), key) WHERE state = 'condemned';

-- +goose Down
DROP INDEX object_next_delete;
ALTER TABLE object DROP retry_at, DROP purge_error; -- and with them failure_is_whole
