"""How long the rows of the views of `TextViews` are."""

from numbers import Real

import numpy as np

from coem.sparse import shorten
from coem.text.scaling import scale_length
from coem.text.specs import COUNTS, by_view
from coem.views import Views


class LengthsMixin:
    """The part of `TextViews` that scales rows."""

    def _lengths(self, name):
        """Return the length to scale to by view."""
        kinds = ("text",) if name == "max_length" else COUNTS
        lengths = by_view(name, getattr(self, name), self.views_, None, kinds)
        for view, value in lengths.items():
            number = isinstance(value, Real) and not isinstance(value, bool)
            if value is not None and not (number and 0 < value < np.inf):
                raise ValueError(
                    f"view {view!r}: {name} must be None or a number above 0, got {value!r}"
                )
        return lengths

    def _limits(self):
        """Return the largest total of a row, for the views that have one."""
        return {view: most for view, most in self._lengths("max_length").items() if most}

    def _shortened(self, data):
        """Return the matrices with no row longer than allowed."""
        return data | {view: shorten(data[view], most) for view, most in self._limits().items()}

    def _scaled(self, data, latent):
        """Return the views, scaled to their lengths, and the view of latent directions."""
        lengths = dict.fromkeys(data) | self._lengths("scale_length")
        scaled = scale_length(Views(data), lengths) if any(lengths.values()) else Views(data)
        return Views({**dict(scaled.items()), **latent}) if latent else scaled
