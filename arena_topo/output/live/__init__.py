"""The screen of ``top --watch``: the cluster, its jobs, those that wait, and the links in use."""
