"""What a cluster can do for gangs and pins, according to its API server."""
