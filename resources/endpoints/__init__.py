"""Model servers: chat and completions over HTTP, their keys, and what a server is able to answer."""
