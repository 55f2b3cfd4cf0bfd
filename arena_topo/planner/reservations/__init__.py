"""Several submitters at once: no GPU is reserved twice."""
