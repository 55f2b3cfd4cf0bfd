"""Commands that bring a job into a cluster, and what is asked of the planner before or after."""
