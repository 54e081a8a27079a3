"""Values and units: policies, samples, tasks, quantities. No I/O, no clock, no decision.

Amounts are integers in the unit of their resource (milli-cores, bytes). Times are monotonic seconds.
"""
