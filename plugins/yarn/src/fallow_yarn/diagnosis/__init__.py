"""The findings of `fallow doctor` about a YARN cluster: what each means, and what to change.

`diagnose` (on an agent without a ResourceManager: `agent`) asks, through `probes`; the other modules judge the answers,
one subject each. What cannot be read is reported as unknown, never as fine. Nothing here changes anything, and nothing
is imported outside of `fallow doctor`.
"""
