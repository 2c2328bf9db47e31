"""The system's own files, under a root that tests can replace."""

from pathlib import Path

ROOT = Path("/")


def text(path: Path) -> str:
    """The text of a file, without the blanks around it."""
    return path.read_text(encoding="utf-8", errors="replace").strip()


def lines(path: Path) -> list[str]:
    return text(path).splitlines()
