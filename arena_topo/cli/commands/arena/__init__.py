"""What Arena has and other tools do not: its own commands, and its commands that are refused by name."""
