"""Why a placement won, or why there is none."""
