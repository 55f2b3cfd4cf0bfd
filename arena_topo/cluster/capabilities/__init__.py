"""What a cluster can do for gangs and pins, asked of the API server."""
