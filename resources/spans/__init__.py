"""Versioned documents: wikis, package READMEs, git repositories and news, month by month."""
