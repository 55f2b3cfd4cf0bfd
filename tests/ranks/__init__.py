"""Real ranks: a job submitted by arena-topo is computed by
a real mpirun, on nodes that are network namespaces.
"""
