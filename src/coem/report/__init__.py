"""A page about a fitted model that one can show to a colleague."""

from coem.report.page import render, write_report
from coem.report.story import Assignments, Document, Group, Story, assign, tell
from coem.report.words import group_words, name_groups

__all__ = [
    "Assignments",
    "Document",
    "Group",
    "Story",
    "assign",
    "group_words",
    "name_groups",
    "render",
    "tell",
    "write_report",
]
