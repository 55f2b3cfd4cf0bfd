"""Commands about a cluster and its nodes."""
