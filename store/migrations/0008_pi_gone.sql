-- Whether nothing of a session that ended comes back by itself: one behind a relay that was lost may.
ALTER TABLE transcripts ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;
UPDATE transcripts SET gone = 1 WHERE ended_at > 0 AND origin = 'hub';
CREATE INDEX transcripts_gone ON transcripts (agent, ended_at) WHERE gone = 1;
