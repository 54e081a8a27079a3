"""What keeps a copilot from serving."""


class CopilotError(Exception):
    """Shown to the operator as its text, without a traceback: what was wrong, where, and what to do."""
