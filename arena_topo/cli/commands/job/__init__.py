"""Commands about jobs in the cluster: reading, following and deleting them."""
