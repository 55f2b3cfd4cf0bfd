"""Building blocks of text output."""
