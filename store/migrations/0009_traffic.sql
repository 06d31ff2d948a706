-- What agents write to each other is read newest first, whether it has ended or not.
CREATE INDEX items_traffic ON items (n) WHERE box = 'fleet';
