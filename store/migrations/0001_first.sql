-- Items: one row a message. Times are milliseconds since the epoch, 0 for none.
CREATE TABLE items (
  n            INTEGER PRIMARY KEY,      -- order of arrival
  id           TEXT NOT NULL UNIQUE,
  rev          INTEGER NOT NULL,
  protocol     TEXT NOT NULL,
  kind         TEXT NOT NULL,
  state        TEXT NOT NULL,
  box          TEXT NOT NULL,            -- needs, waiting, notices, done: where the person finds it
  agent        TEXT NOT NULL,
  title        TEXT NOT NULL,
  priority     INTEGER NOT NULL,
  for_operator INTEGER NOT NULL,
  received_at  INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  ended_at     INTEGER NOT NULL,
  changed_at   INTEGER NOT NULL,
  due_at       INTEGER NOT NULL,         -- when the clock next does something to it; 0: never
  idem_key     TEXT,
  digest       BLOB,
  content      TEXT NOT NULL,
  outcome      TEXT,
  response     BLOB,
  track        TEXT NOT NULL,            -- '', delivered-to-agent, acknowledged, expired
  track_detail TEXT,
  mailbox      TEXT,                     -- the track of a message addressed to an agent
  is_read      INTEGER NOT NULL,
  starred      INTEGER NOT NULL,
  archived     INTEGER NOT NULL,
  snoozed_until INTEGER NOT NULL,
  pending      TEXT,                     -- a decision kept back for its undo time
  bulk         TEXT,                     -- the body and the context. What can be large comes last: a list never reads it
  original     BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX items_key    ON items (agent, idem_key, protocol) WHERE idem_key IS NOT NULL;
CREATE INDEX items_needs         ON items (priority DESC, n) WHERE box = 'needs';
CREATE INDEX items_newest        ON items (box, ended_at DESC, n DESC) WHERE box <> 'needs';
CREATE INDEX items_due           ON items (due_at) WHERE due_at > 0;
CREATE INDEX items_agent_open    ON items (agent) WHERE state = 'open';
CREATE INDEX items_ended         ON items (ended_at) WHERE ended_at > 0;
CREATE INDEX items_read          ON items (received_at) WHERE box = 'notices' AND is_read = 1;

-- What is left of an item whose retention ended: enough to tell its submitter that it is gone.
CREATE TABLE tombstones (
  id    TEXT PRIMARY KEY,
  agent TEXT NOT NULL,
  at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tombstones_at ON tombstones (at);

-- The history of items: appended to, never changed.
CREATE TABLE history (
  item   INTEGER NOT NULL REFERENCES items (n) ON DELETE CASCADE,
  seq    INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  actor  TEXT NOT NULL,
  action TEXT NOT NULL,
  note   TEXT NOT NULL,
  PRIMARY KEY (item, seq)
) STRICT, WITHOUT ROWID;

-- What must be pushed, and every attempt at it: the reply of an item, or a directive.
CREATE TABLE owed (
  id       INTEGER PRIMARY KEY,
  item     INTEGER UNIQUE REFERENCES items (n) ON DELETE CASCADE,
  entry    TEXT UNIQUE REFERENCES entries (key) ON DELETE CASCADE,
  protocol TEXT NOT NULL,
  agent    TEXT NOT NULL,
  url      TEXT NOT NULL,
  host     TEXT NOT NULL,
  state    TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  created  INTEGER NOT NULL,
  next_at  INTEGER NOT NULL,
  round    INTEGER NOT NULL DEFAULT 0,    -- grows when somebody else decides about it: an attempt of an earlier round is late
  CHECK ((item IS NULL) <> (entry IS NULL))
) STRICT;
CREATE INDEX owed_due ON owed (next_at) WHERE state = 'pending';
CREATE INDEX owed_waiting ON owed (agent, host) WHERE state = 'waiting_approval';
CREATE INDEX owed_failed ON owed (item) WHERE state IN ('gave_up', 'refused');

CREATE TABLE attempts (
  owed    INTEGER NOT NULL REFERENCES owed (id) ON DELETE CASCADE,
  n       INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  took    INTEGER NOT NULL,
  status  INTEGER NOT NULL,
  error   TEXT NOT NULL,
  snippet TEXT NOT NULL,
  PRIMARY KEY (owed, n)
) STRICT, WITHOUT ROWID;

-- Full-text search. `reindex` holds the rows whose text is not in the index yet: the index catches up in batches,
-- and before any search.
CREATE VIRTUAL TABLE items_fts USING fts5 (
  title, body, agent, tags, options, answers, comments,
  content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TABLE reindex (n INTEGER PRIMARY KEY) STRICT;

-- Agents and what proves them. Only hashes of tokens are kept.
CREATE TABLE agents (
  id         TEXT PRIMARY KEY,
  protocol   TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER NOT NULL,
  last_seen  INTEGER NOT NULL,
  session_seen INTEGER NOT NULL DEFAULT 0, -- last activity in any session, kept when the sessions are forgotten
  alg        TEXT NOT NULL,               -- hmac-sha256 or ed25519
  policy     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE credentials (
  hash       BLOB PRIMARY KEY,            -- names the signing secret that was given out with it, too
  agent      TEXT NOT NULL REFERENCES agents (id),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,            -- 0: as long as it is the agent's current one
  shown      INTEGER NOT NULL DEFAULT 0   -- whether its agent has shown it
) STRICT, WITHOUT ROWID;
CREATE INDEX credentials_agent ON credentials (agent);

CREATE TABLE pairings (
  id         TEXT PRIMARY KEY,
  agent      TEXT NOT NULL,
  code       TEXT NOT NULL,
  note       TEXT NOT NULL,
  secret     BLOB NOT NULL,               -- hash of what only the asker knows
  state      TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Sessions: lease-bound addresses under an agent; and the operator's durable stops, which outlive them.
CREATE TABLE sessions (
  id          TEXT PRIMARY KEY,
  agent       TEXT NOT NULL REFERENCES agents (id),
  state       TEXT NOT NULL,              -- active, closed, expired
  created_at  INTEGER NOT NULL,
  lease_end   INTEGER NOT NULL,
  last_seen   INTEGER NOT NULL,
  closed_at   INTEGER NOT NULL,
  ttl         INTEGER NOT NULL,           -- milliseconds
  by_operator INTEGER NOT NULL,
  about       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_lease ON sessions (lease_end) WHERE state = 'active';
CREATE INDEX sessions_agent ON sessions (agent, created_at);

CREATE TABLE stops (
  agent TEXT PRIMARY KEY,
  at    INTEGER NOT NULL,
  by    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Mailbox entries, in the order they came.
CREATE TABLE entries (
  n               INTEGER PRIMARY KEY,
  key             TEXT NOT NULL UNIQUE,
  kind            TEXT NOT NULL,          -- directive, message, response, receipt
  agent           TEXT NOT NULL,          -- whose mailbox
  session         TEXT NOT NULL,          -- '' for any
  sender          TEXT NOT NULL,
  dest            TEXT NOT NULL,
  body            BLOB NOT NULL,
  item            INTEGER REFERENCES items (n) ON DELETE CASCADE,
  state           TEXT NOT NULL,
  enqueued_at     INTEGER NOT NULL,
  expires_at      INTEGER NOT NULL,
  due_at          INTEGER NOT NULL,
  delivered_at    INTEGER NOT NULL,
  ended_at        INTEGER NOT NULL,
  prior           TEXT NOT NULL,
  note            TEXT NOT NULL,
  live            INTEGER NOT NULL,
  invisible_until INTEGER NOT NULL,
  claimed_by      TEXT NOT NULL,
  presented       INTEGER NOT NULL
) STRICT;
CREATE INDEX entries_live    ON entries (agent, n) WHERE live = 1;
CREATE INDEX entries_session ON entries (session) WHERE live = 1 AND session <> '';
CREATE INDEX entries_due     ON entries (due_at) WHERE live = 1;
CREATE INDEX entries_depth   ON entries (dest, sender) WHERE live = 1;
CREATE INDEX entries_item    ON entries (item) WHERE item IS NOT NULL;
CREATE INDEX entries_kind    ON entries (kind, n);

CREATE TABLE settings (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Agents whose open items may be for somebody else since their policy changed; '' is all, since the operator's name did.
CREATE TABLE reclassify (agent TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- Every decision about authority, denied attempts included.
CREATE TABLE audit (
  n      INTEGER PRIMARY KEY,
  at     INTEGER NOT NULL,
  actor  TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  result TEXT NOT NULL
) STRICT;
