"""What all tests share."""

from hypothesis import settings

# No test depends on the clock: a busy machine is no failure.
settings.register_profile("coem", deadline=None)
settings.load_profile("coem")
