"""The place of every worker: a pure function of what is asked and what is there."""
