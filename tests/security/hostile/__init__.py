"""What an attacker runs: programs that need nothing but Python. Each docstring says what it tries.

Nothing here imports Fallow: a task of another user has none of it.
"""
