"""Commands about the tool itself, its sandbox and its agent."""
