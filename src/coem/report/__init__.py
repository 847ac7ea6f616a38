"""A page about a fitted model that you can show to a colleague."""

from coem.report.choice import Document
from coem.report.page import render, write_report
from coem.report.readers import read
from coem.report.reading import Reading
from coem.report.story import Assignments, Group, Story
from coem.report.telling import assign, tell
from coem.report.words import group_words, name_groups

__all__ = [
    "Assignments",
    "Document",
    "Group",
    "Reading",
    "Story",
    "assign",
    "group_words",
    "name_groups",
    "read",
    "render",
    "tell",
    "write_report",
]
