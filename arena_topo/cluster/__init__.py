"""What users do to a whole cluster: read it, examine it, set it up."""
