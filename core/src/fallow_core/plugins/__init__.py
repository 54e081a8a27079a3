"""Discovery and hosting of plugins: entry points, API level, lanes with deadlines, the breaker.

Hides pluggy and threads from the rest of core. It knows no framework and makes no decision about capacity.
"""
