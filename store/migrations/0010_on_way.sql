-- Each start asks for the answers that are not known to have gone out, and there are few of them.
CREATE INDEX items_on_way ON items (n) WHERE track = '' AND ended_at > 0 AND json_extract(content, '$.traced') = 1;
