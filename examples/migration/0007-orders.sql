-- Version 7: an order has a state. :epoch is whose leadership this runs under.
PRAGMA busy_timeout = 10000;
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS baton_token (name TEXT PRIMARY KEY, epoch BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, what TEXT NOT NULL, state TEXT);
CREATE TABLE IF NOT EXISTS versions (version INTEGER PRIMARY KEY, epoch BIGINT NOT NULL);
-- Whoever comes with a smaller epoch than one that was here fails at the CHECK, and undoes all.
CREATE TEMP TABLE late (is_late INTEGER CHECK (is_late = 0));
INSERT INTO late SELECT coalesce(max(epoch), 0) > :epoch FROM baton_token WHERE name = 'schema';
INSERT INTO baton_token (name, epoch) VALUES ('schema', :epoch)
    ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch;
INSERT OR IGNORE INTO versions (version, epoch) VALUES (7, :epoch);
UPDATE orders SET state = 'new' WHERE state IS NULL;
COMMIT;
