"""The containers of pods: their processes, what users start in them, and what is asked of them."""
