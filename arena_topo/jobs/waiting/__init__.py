"""When jobs that wait will probably start, by what the jobs of the cluster say about their ends."""
