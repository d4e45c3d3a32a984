# SPDX-License-Identifier: GPL-2.0-only
"""Checks that print what they found. The last line has the sums, which scripts/test adds up."""


class Sums:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def say(self, good, text):
        self.passed += bool(good)
        self.failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {text}", flush=True)
        return good

    def skip(self, text, required=False):
        self.failed += required
        self.skipped += not required
        print(f"{'FAIL' if required else 'skip'} {text}", flush=True)

    def end(self):
        """The exit status."""
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return int(self.failed > 0)
