-- The network of agents that speak MAP: what must outlive the hub, a record each.
CREATE TABLE map_records (
  kind TEXT NOT NULL,                     -- agent, scope, session, conversation, turn, queued, pending, asked, grant, name
  id   TEXT NOT NULL,
  body BLOB NOT NULL,                     -- JSON
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

-- What happened, for whoever asks for it again.
CREATE TABLE map_events (
  n    INTEGER PRIMARY KEY AUTOINCREMENT,
  id   TEXT NOT NULL UNIQUE,
  at   INTEGER NOT NULL,
  body BLOB NOT NULL                      -- JSON: the event and who may see it
) STRICT;
CREATE INDEX map_events_at ON map_events (at);
