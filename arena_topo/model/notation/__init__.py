"""Reading and writing small notations: quantities, durations, YAML, strict documents."""
