"""What a cluster publishes about its hardware, read into the model; one reader for each source."""
