"""Targets with a fault that the harness has to find: how it is tested itself."""

import faulthandler

import numpy as np


class Fault:
    """Well in all cases except those from seed 3 on."""

    def __init__(self, folder):
        self.n_cases = 0

    def run(self, rng):
        self.n_cases += 1
        if self.n_cases > 3:
            self.fail()


class Crash(Fault):
    def fail(self):
        faulthandler._sigsegv()


class Hang(Fault):
    def fail(self):
        while True:
            pass


class Hunger(Fault):
    def fail(self):
        np.ones(1 << 40)


class Surprise(Fault):
    def fail(self):
        raise KeyError("nobody expects this")


PLANTED = {"crash": Crash, "hang": Hang, "hunger": Hunger, "surprise": Surprise}
