package client

// MarkFile is where d remembers an entry.
func MarkFile(d *Done, key string) string { return d.file(key) }
