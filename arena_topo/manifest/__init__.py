"""From a job to the objects that the API server gets."""
