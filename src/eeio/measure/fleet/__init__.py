"""A suite on many nodes: submitting it to Slurm, and collecting the results."""
