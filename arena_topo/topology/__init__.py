"""What a cluster says of its hardware, read into the model; one reader a source."""
