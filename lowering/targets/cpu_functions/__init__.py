"""Mathematical functions for vectors on CPUs, with their measured errors."""
