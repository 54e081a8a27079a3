"""Discovery and hosting of plugins: entry points, API levels, lanes with deadlines, the breaker.

It hides pluggy and threads from the rest of core. It knows no framework and makes no decisions about capacity.
"""
