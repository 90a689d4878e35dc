-- Objects that are uploaded in parts.
--
-- compatible_from stays as it is: a program that knows nothing of parts reserves none, finds the declaration of an
-- object in parts to be another than its own, and no bytes of it before it was completed. Its collector does not
-- abort uploads; record_purge therefore lets it mark no such object as deleted.

-- +goose Up
ALTER TABLE object
    -- how long each part is but the last; NULL: the object is uploaded as a whole
    ADD part_size  bigint CHECK (part_size BETWEEN 5242880 AND 5368709120),
    -- the upload in the storage that is the object's; NULL: it is not known to have begun
    ADD upload_id  text COLLATE "C" CHECK (upload_id <> ''),
    ADD CONSTRAINT parts_have_a_size CHECK (part_size IS NULL OR declared_size IS NOT NULL
                                            AND declared_size BETWEEN 1 AND 10000 * part_size),
    ADD CONSTRAINT upload_is_of_parts CHECK (upload_id IS NULL OR part_size IS NOT NULL);

-- +goose Down
ALTER TABLE object DROP part_size, DROP upload_id;
