"""The DuckDB file: its schema, reads and writes through one lock, frames, and the checks that gate a table."""
