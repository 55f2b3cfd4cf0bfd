"""Communication groups: the places of workers by which ranks exchange the most data, and how far groups are spread."""
