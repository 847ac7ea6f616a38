"""Write a corpus: a folder of rows, one shard after the other."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from coem.corpus import MANIFEST, SCHEMA, Corpus
from coem.io.whole import new_file, new_folder
from coem.typing import Array, Matrix, is_sparse
from coem.views import Views, as_views, row_keys


class CorpusWriter:
    """Append rows to a corpus; every call of `append` writes a shard.

    A shard counts once the manifest names it. What a killed process left behind is not named.

    Parameters
    ----------
    path : path
        The folder; a new one is made if there is none.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.mkdir(exist_ok=True)
        self.manifest: dict[str, Any] = {"schema": SCHEMA, "views": [], "shards": [], "digest": ""}
        if (self.path / MANIFEST).exists():
            self.manifest = dict(Corpus(self.path).manifest)

    def append(self, X: Any) -> None:
        """Write the rows of some views as the next shard."""
        views = as_views(X)
        described = [_described(name, matrix) for name, matrix in views.items()]
        if self.manifest["shards"] and described != self.manifest["views"]:
            raise ValueError(f"the corpus has the views {self.manifest['views']}, not {described}")
        name = f"shard-{len(self.manifest['shards']):06d}"
        digest = hashlib.blake2b(self.manifest["digest"].encode(), digest_size=16)
        with new_folder(self.path / name, force=True) as folder:
            for part, array in _arrays(views).items():
                np.save(folder / f"{part}.npy", array, allow_pickle=False)
                digest.update(part.encode() + np.ascontiguousarray(array).data)
        self.manifest["views"] = described
        self.manifest["shards"] = [*self.manifest["shards"], {"name": name, "n_rows": len(views)}]
        self.manifest["digest"] = digest.hexdigest()
        with new_file(self.path / MANIFEST) as file:
            file.write(json.dumps(self.manifest, indent=1).encode())


def _described(name: str, X: Matrix) -> dict[str, Any]:
    return {"name": name, "width": X.shape[1], "sparse": is_sparse(X), "dtype": str(X.dtype)}


def _arrays(views: Views) -> dict[str, Array]:
    """Return the arrays of a shard by the names of their files."""
    arrays: dict[str, Array] = {"keys": row_keys(views)}
    for name, X in views.items():
        if is_sparse(X):
            indptr, indices = X.indptr.astype(np.int32), X.indices.astype(np.int32)
            arrays |= {f"{name}.indptr": indptr, f"{name}.indices": indices, f"{name}.data": X.data}
        else:
            arrays[f"{name}.values"] = np.ascontiguousarray(X)
    return arrays
