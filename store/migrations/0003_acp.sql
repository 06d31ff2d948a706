-- How far a piece of work is that an agent does for another.
ALTER TABLE items ADD COLUMN progress TEXT;

-- Calls that wait for the person, whether or not a request is held open for them.
CREATE INDEX items_call ON items (n) WHERE state = 'open' AND json_extract(content, '$.call') IS NOT NULL;

-- The agents that principals run.
CREATE TABLE crew (
  n          INTEGER PRIMARY KEY,
  id         TEXT NOT NULL UNIQUE,
  peer       TEXT NOT NULL UNIQUE,        -- as agents has it
  principal  TEXT NOT NULL,
  role       TEXT NOT NULL,
  parent     TEXT NOT NULL,               -- '' for none
  state      TEXT NOT NULL,               -- running, stopped
  process    INTEGER NOT NULL,
  config     TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  reason     TEXT NOT NULL,
  queued       INTEGER NOT NULL DEFAULT 0, -- deliveries in the queue, which keeps both up
  queued_bytes INTEGER NOT NULL DEFAULT 0  -- of them
) STRICT;
CREATE INDEX crew_principal ON crew (principal, n);

-- What is on its way to them, in order, until it is acknowledged. A number is never used again: it is how far a reader is.
CREATE TABLE queue (
  n         INTEGER PRIMARY KEY AUTOINCREMENT,
  id        TEXT NOT NULL UNIQUE,
  principal TEXT NOT NULL,
  agent     TEXT NOT NULL,
  sender    TEXT NOT NULL,
  method    TEXT NOT NULL,
  item      TEXT NOT NULL,                -- the message between agents whose track it moves, or ''
  directive TEXT NOT NULL,                -- the key of a directive, or ''
  at        INTEGER NOT NULL,
  handed_at INTEGER NOT NULL,
  note      INTEGER NOT NULL,             -- what it carries
  size      INTEGER NOT NULL              -- of that, in bytes
) STRICT;
CREATE INDEX queue_principal ON queue (principal, n);
CREATE INDEX queue_agent     ON queue (agent);
CREATE INDEX queue_note      ON queue (note);
CREATE INDEX queue_at        ON queue (at);

-- What deliveries carry: one message for everyone who gets it, as long as it is in the queue.
CREATE TABLE notes (
  n       INTEGER PRIMARY KEY,
  message BLOB NOT NULL
) STRICT;
CREATE TRIGGER queue_in AFTER INSERT ON queue BEGIN
  UPDATE crew SET queued = queued + 1, queued_bytes = queued_bytes + NEW.size WHERE id = NEW.agent;
END;
CREATE TRIGGER queue_out AFTER DELETE ON queue BEGIN
  UPDATE crew SET queued = queued - 1, queued_bytes = queued_bytes - OLD.size WHERE id = OLD.agent;
  DELETE FROM notes WHERE n = OLD.note AND NOT EXISTS (SELECT 1 FROM queue WHERE note = OLD.note);
END;

-- What wants one answer, and whether it has it.
CREATE TABLE work (
  n           INTEGER PRIMARY KEY,
  kind        TEXT NOT NULL,              -- task, tool, query
  correlation TEXT NOT NULL,              -- as its submitter names it
  name        TEXT NOT NULL,              -- as its addressee does
  principal   TEXT NOT NULL,
  submitter   TEXT NOT NULL,
  addressee   TEXT NOT NULL,              -- an agent, or 'human'
  tool        TEXT NOT NULL,
  item        TEXT NOT NULL,
  gated       INTEGER NOT NULL,
  open        INTEGER NOT NULL,
  at          INTEGER NOT NULL
) STRICT;
CREATE INDEX work_for  ON work (addressee, kind, name, n);
CREATE INDEX work_tool ON work (addressee, tool, n) WHERE kind = 'tool';
CREATE INDEX work_open ON work (n) WHERE open = 1 AND item <> '';
CREATE INDEX work_by   ON work (submitter, n) WHERE open = 1;
CREATE INDEX work_at   ON work (at);

-- The first answer to each request that named a correlation.
CREATE TABLE answered (
  principal TEXT NOT NULL,
  method    TEXT NOT NULL,
  key       TEXT NOT NULL,
  digest    BLOB NOT NULL,
  result    BLOB NOT NULL,
  at        INTEGER NOT NULL,
  PRIMARY KEY (principal, method, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX answered_at ON answered (at);

-- What agents let each other know: the newest version of each key.
CREATE TABLE shared (
  agent   TEXT NOT NULL,
  key     TEXT NOT NULL,
  value   TEXT NOT NULL,
  scope   TEXT NOT NULL,                  -- session, persistent
  version INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (agent, key)
) STRICT, WITHOUT ROWID;
