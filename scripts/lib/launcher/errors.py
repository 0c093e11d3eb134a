"""What ends the launcher before or beside the job."""


class LaunchError(Exception):
    """Text for the user (a line a fault) and the exit status: 2 for usage and config, 1 for the rest."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


def exit_status(returncode: int) -> int:
    """A shell's status for what subprocess reports: 128 + N for death by signal N."""
    return returncode if returncode >= 0 else 128 - returncode
