"""Files: archives of arrays that hold no code, model files, tables, checkpoints of long fits."""

from coem.io.archive import read_archive, write_archive
from coem.io.checkpoint import Checkpoint
from coem.io.model_file import ModelInfo, Saves, read_info, read_model, write_model
from coem.io.registry import register
from coem.io.values import Absent, ModelFileError
from coem.io.whole import new_file, new_folder

__all__ = [
    "Absent",
    "Checkpoint",
    "ModelFileError",
    "ModelInfo",
    "Saves",
    "new_file",
    "new_folder",
    "read_archive",
    "read_info",
    "read_model",
    "register",
    "write_archive",
    "write_model",
]
