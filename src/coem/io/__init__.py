"""Files: archives of arrays that hold no code, and the checkpoints of long fits."""

from coem.io.archive import read_archive, write_archive
from coem.io.checkpoint import Checkpoint

__all__ = ["Checkpoint", "read_archive", "write_archive"]
