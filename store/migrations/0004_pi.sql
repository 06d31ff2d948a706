-- What agents' sessions said and did.
CREATE TABLE transcripts (
  protocol  TEXT NOT NULL,
  id        TEXT NOT NULL,
  agent     TEXT NOT NULL,
  title     TEXT NOT NULL,
  folder    TEXT NOT NULL,
  file      TEXT NOT NULL,                -- what it is taken up again by, or ''
  args      TEXT NOT NULL,                -- a JSON array
  origin    TEXT NOT NULL,                -- hub, relay
  opened_at INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  ended_at  INTEGER NOT NULL,             -- 0: it is live
  ended     TEXT NOT NULL,
  row_count INTEGER NOT NULL,             -- the number of the last row
  rev       INTEGER NOT NULL DEFAULT 0,   -- of the last change of a row
  info      TEXT NOT NULL,
  PRIMARY KEY (protocol, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX transcripts_seen ON transcripts (protocol, last_seen);
CREATE INDEX transcripts_live ON transcripts (protocol) WHERE ended_at = 0;

CREATE TABLE transcript_rows (
  protocol TEXT NOT NULL,
  session  TEXT NOT NULL,
  n        INTEGER NOT NULL,              -- from 1
  rev      INTEGER NOT NULL,
  kind     TEXT NOT NULL,
  at       INTEGER NOT NULL,
  body     TEXT NOT NULL,
  text     TEXT NOT NULL,                 -- what is found by searching
  PRIMARY KEY (protocol, session, n)
) STRICT;
CREATE INDEX transcript_rows_rev ON transcript_rows (protocol, session, rev);
