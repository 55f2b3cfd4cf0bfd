"""A real Kubernetes control plane for tests: etcd, API server, controllers, scheduler, KWOK nodes, MPI
operator.

Everything is built from pinned Go modules and runs as ordinary processes on loopback: no root, no container.
"""
