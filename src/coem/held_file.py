"""A file that lives as long as the objects that refer to it."""

from io import FileIO


class HeldFile(FileIO):
    """A file that is closed without a warning once no object refers to it.

    No function of Python may do that: Ctrl-C would be lost in it, and the file would stay open.
    """

    __del__ = FileIO.close
