"""Our own implementations of rules that other schedulers
publish, for comparison; none of it is their code.
"""
