"""What others see of a controller: the free cluster that it publishes, what is amiss with plans, and its metrics."""
