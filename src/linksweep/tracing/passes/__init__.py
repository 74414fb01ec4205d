"""Programs rewritten into cheaper ones."""
