"""What a plan is worth: placements of ranks, measured on
shaped networks. ``benchmarks/worth/__main__.py`` is its front.
"""
