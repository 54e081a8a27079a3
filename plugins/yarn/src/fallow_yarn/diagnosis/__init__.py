"""What `fallow doctor` says of a YARN cluster: each finding with what it means and what to change.

`diagnose` asks, and the other modules judge what it was told, one subject each. What cannot be read is said to be
unknown, never fine. Nothing here changes anything, and nothing here is asked for outside `fallow doctor`.
"""

from fallow_yarn.diagnosis.diagnose import diagnose

__all__ = ["diagnose"]
