"""The live view: textual screens over what jobs and nodes do."""
