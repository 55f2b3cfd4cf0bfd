"""When the jobs that wait will start, and the planner that estimates it."""
