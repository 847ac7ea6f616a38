"""A page about a fitted model that you can show to a colleague."""

from coem.report.choice import Document
from coem.report.map import DocumentMap
from coem.report.naming import Naming
from coem.report.page import render, write_report
from coem.report.readers import read
from coem.report.reading import Reading
from coem.report.segments import SegmentStory, render_segments, tell_segments, write_segments
from coem.report.story import Assignments, Group, Story
from coem.report.telling import assign, tell
from coem.report.timeline import Timeline
from coem.report.tree import Tree
from coem.report.truth import judged
from coem.report.words import group_words, name_groups

__all__ = [
    "Assignments",
    "Document",
    "DocumentMap",
    "Group",
    "Naming",
    "Reading",
    "SegmentStory",
    "Story",
    "Timeline",
    "Tree",
    "assign",
    "group_words",
    "judged",
    "name_groups",
    "read",
    "render",
    "render_segments",
    "tell",
    "tell_segments",
    "write_report",
    "write_segments",
]
