"""Where the N trainings happen."""
