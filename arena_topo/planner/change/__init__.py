"""A gang that has its places already: more members, fewer, or others for those that are lost."""
