"""From a request to a function that runs, and back from the cache."""
