"""Kinds of jobs: the roles of each, the names and labels of its pods, and how it is suspended and ends."""
