-- Items whose agents keep a request open for the answer.
CREATE INDEX items_held ON items (n) WHERE state = 'open' AND json_extract(content, '$.held') = 1;

-- Rules that answer calls for the person, in the order in which they are tried. A revoked rule stays: history names it.
CREATE TABLE rules (
  id         TEXT PRIMARY KEY,
  place      REAL NOT NULL,               -- between its neighbours'
  verdict    TEXT NOT NULL,               -- allow, deny, ask
  reason     TEXT NOT NULL,               -- what the agent is told
  match      TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  item       TEXT NOT NULL,               -- the message on whose card it was made, or ''
  revoked_at INTEGER NOT NULL,
  revoked_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX rules_place ON rules (place) WHERE revoked_at = 0;

-- Every call that asked leave, of whatever protocol, and how it was judged: what a rule is tried against.
CREATE TABLE judgements (
  n          INTEGER PRIMARY KEY,
  protocol   TEXT NOT NULL,
  agent      TEXT NOT NULL,
  session    TEXT NOT NULL,
  request    TEXT NOT NULL,
  at         INTEGER NOT NULL,
  tool       TEXT NOT NULL,
  item       TEXT NOT NULL,               -- the message that asked the person, or ''
  verdict    TEXT NOT NULL,               -- allow, deny; '' while it waits
  judge      TEXT NOT NULL,               -- human:me, rule:ID, system:…
  reason     TEXT NOT NULL,
  decided_at INTEGER NOT NULL,
  changed    TEXT,                        -- the arguments that the person changed
  subject    TEXT NOT NULL,
  UNIQUE (protocol, session, request)
) STRICT;
CREATE INDEX judgements_at      ON judgements (at);
CREATE INDEX judgements_waiting ON judgements (n) WHERE verdict = '';
CREATE INDEX judgements_rule    ON judgements (judge, decided_at) WHERE judge LIKE 'rule:%';

-- Guarded sessions: what was negotiated, and the head of the chain of steps.
CREATE TABLE guarded (
  id         TEXT NOT NULL,
  protocol   TEXT NOT NULL,
  agent      TEXT NOT NULL,
  agent_id   TEXT NOT NULL,               -- as the agent names itself
  platform   TEXT NOT NULL,
  folder     TEXT NOT NULL,
  key_id     TEXT NOT NULL,
  hello      BLOB NOT NULL,
  terms      BLOB NOT NULL,
  opened_at  INTEGER NOT NULL,
  last_seen  INTEGER NOT NULL,
  sealed_at  INTEGER NOT NULL,            -- by its own end; 0: not
  head       TEXT NOT NULL,
  steps      INTEGER NOT NULL,
  PRIMARY KEY (protocol, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX guarded_seen ON guarded (last_seen, protocol, id);

-- The chain: appended to, never changed. What was answered is beside it.
CREATE TABLE steps (
  n            INTEGER PRIMARY KEY,
  protocol     TEXT NOT NULL,
  session      TEXT NOT NULL,
  seq          INTEGER NOT NULL,          -- from 1, without a gap
  request      TEXT NOT NULL,
  method       TEXT NOT NULL,
  turn         TEXT NOT NULL,
  at           INTEGER NOT NULL,          -- by the hub's clock
  sent_at      TEXT NOT NULL,             -- as the agent wrote it: it is hashed
  request_hash TEXT NOT NULL,
  hash         TEXT NOT NULL,
  summary      TEXT NOT NULL,
  verdict      TEXT NOT NULL,             -- allow, deny, modify; '' while it waits
  codes        TEXT NOT NULL,
  decided_at   INTEGER NOT NULL,
  answer       BLOB,                      -- as it was sent
  params       BLOB NOT NULL,             -- as they came
  UNIQUE (protocol, session, seq)
) STRICT;
CREATE INDEX steps_request ON steps (protocol, session, request);
CREATE INDEX steps_waiting ON steps (n) WHERE verdict = '';

-- Requests that a session has used up, refused ones too.
CREATE TABLE used (
  protocol TEXT NOT NULL,
  session  TEXT NOT NULL,
  id       TEXT NOT NULL,                 -- of the request, or "nonce:" and its nonce
  at       INTEGER NOT NULL,
  PRIMARY KEY (protocol, session, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX used_at ON used (at);
