"""One module per command, in the rooms of the help page."""
