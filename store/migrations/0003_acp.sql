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
  reason     TEXT NOT NULL
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
  message   BLOB NOT NULL
) STRICT;
CREATE INDEX queue_principal ON queue (principal, n);
CREATE INDEX queue_agent     ON queue (agent);
CREATE INDEX queue_at        ON queue (at);

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
