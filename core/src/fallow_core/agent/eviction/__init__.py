"""Terminates tasks under pressure: observes tasks, decides, gives orders, and follows each termination to its end.

It never limits batch; that is `throttling`.
"""
