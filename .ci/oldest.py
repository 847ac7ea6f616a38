"""Print what pip must install to have the oldest versions that pyproject.toml claims to work with.

Those are the bounds of what users install: the dependencies, the extras but those of developers,
and what the extension is built with. The lines are constraints: pip takes those it needs.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
TOOLS = ("test", "bench", "dev")  # extras of developers, who have the newest tools
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)>=(?P<version>[\w.]+)")


def claimed(project):
    """Return the requirements of users, as pyproject.toml has them.

    Parameters
    ----------
    project : dict
        The content of pyproject.toml.
    """
    extras = project["project"]["optional-dependencies"]
    own = [part for name, parts in extras.items() if name not in TOOLS for part in parts]
    return [*project["project"]["dependencies"], *own, *project["build-system"]["requires"]]


def oldest(requirement):
    """Return a constraint to the lowest version that a requirement allows."""
    found = REQUIREMENT.fullmatch(requirement)
    if found is None:
        raise ValueError(f"{requirement!r} has no lower bound: write NAME>=VERSION")
    return f"{found['name']}=={found['version']}"


def main():
    """Print the constraints, one a line."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    for requirement in claimed(project):
        sys.stdout.write(oldest(requirement) + "\n")


if __name__ == "__main__":
    main()
