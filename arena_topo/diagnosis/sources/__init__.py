"""Evidence about ranks, gathered without their help: one module for each source."""
