"""What people see of a run: files, figures, and the curve in the terminal."""
