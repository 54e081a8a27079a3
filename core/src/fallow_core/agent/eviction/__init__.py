"""Terminates tasks under pressure: joins tasks with what was measured, decides, gives orders, follows each to its end.

It never limits batch; that is `throttling`.
"""
