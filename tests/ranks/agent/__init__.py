"""A small kubelet for several nodes at once: their pods run as processes in Linux namespaces of their own.

The agent is the first process of a PID namespace and mounts everything in a mount namespace of its own:
whatever ends it, SIGKILL too, the kernel ends its pods with it and takes away their mounts, bridges and
namespaces.
"""
