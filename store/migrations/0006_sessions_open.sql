-- What a session waits for: the open items that it submitted.
CREATE INDEX items_session_open ON items (json_extract(content, '$.session')) WHERE state = 'open' AND json_extract(content, '$.session') IS NOT NULL;
