"""Planning a job against everybody else, and making its plan hold."""
