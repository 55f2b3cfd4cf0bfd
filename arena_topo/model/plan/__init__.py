"""Values about plans: the demand, the placement, and the plan's record on the job."""
