"""The build beyond pyproject.toml: the lists of dependencies, and the pages' settings beside app.py."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SETTINGS = ".streamlit/config.toml"


class BuildWithSettings(build_py):
    """Python's files, and the settings that Streamlit looks for in the folder of the script that it runs."""

    def run(self) -> None:
        super().run()
        beside_app = Path(self.build_lib, SETTINGS)
        beside_app.parent.mkdir(parents=True, exist_ok=True)
        self.copy_file(SETTINGS, str(beside_app))


def requirements() -> list[str]:
    """The packages in requirements.txt, in any version: a TensorFlow that is there stays as it is."""
    lines = Path("requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line for one in lines if (line := one.partition("#")[0].strip()) and not line.startswith("-")]


setup(install_requires=requirements(), cmdclass={"build_py": BuildWithSettings})
