"""The command `mapbench` of an installation, which is `python -m measure`."""

from measure import interruption


def main() -> int:
    interruption.expect()
    from measure import __main__ as command

    return command.main()
