"""What survives a restart: published offers, original values of control files, terminations, grants, the last config.

Files only. It decides nothing; what is written comes from the layers above.
"""
