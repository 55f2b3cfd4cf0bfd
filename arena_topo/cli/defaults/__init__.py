"""Where a flag that was not given gets its value: a variable, the user's profile, Arena's configuration."""
