"""Reading from servers: requests with pacing, caching and limits. What an answer means belongs to the nouns."""
