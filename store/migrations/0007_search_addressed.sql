-- Messages between agents are found by whom they are for, and items by what an acknowledgment said: the index takes them up
-- again, in batches, as it does what is new.
INSERT OR IGNORE INTO reindex (n) SELECT n FROM items WHERE box = 'fleet' OR (track = 'acknowledged' AND track_detail LIKE '%"note":%');
