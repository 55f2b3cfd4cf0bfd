"""Kinds of jobs: what each says of its roles, the names and labels of its pods, and how it is suspended and ends."""
