#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks the prompt of scripts/run --shell on a terminal: commands, Ctrl-C, the way out, and that nothing is left in
the folder for temporary files, also when the terminal is closed. Last line: 'N passed, N failed, N skipped'."""
import os
import pty
import re
import select
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sums import Sums                                                 # noqa: E402

DEMO = Path(__file__).resolve().parent / "demo.py"
LIMIT_S = 120


class Terminal:
    """The prompt, in a terminal of its own."""

    def __init__(self, tmp):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TMPDIR"] = tmp
            os.execv(sys.executable, [sys.executable, str(DEMO), "--shell", "--topology", "4"])

    def expect(self, pattern):
        """Whether this comes, after what was expected before."""
        end = time.monotonic() + LIMIT_S
        while not (found := re.search(pattern, self.seen)):
            if time.monotonic() > end or not self.read(1):
                return False
        self.seen = self.seen[found.end():]
        return True

    def read(self, seconds):
        """What comes within this time. False: the terminal has ended or is closed."""
        try:
            if select.select([self.fd], [], [], seconds)[0]:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            return True
        except OSError:
            time.sleep(0.2)
            return False

    def type(self, text):
        os.write(self.fd, text.encode())

    def ended(self):
        """The exit status; None: it has not ended in time."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return status
            self.read(0.2)
        return None


def check_prompt(sums, tmp):
    terminal = Terminal(tmp)
    if sums.say(terminal.expect("starts it"), "a prompt comes"):
        terminal.type("echo $((40 + 2)) $(cat /sys/kernel/sched_ext/state)\n")
        sums.say(terminal.expect("42 disabled"), "it runs commands")
        terminal.type("echo limit $SCX_TIMEOUT_MS\n")
        sums.say(terminal.expect(r"\nlimit 30000"), "the watchdog has patience")
        terminal.type("echo go; sleep 1000\n")
        terminal.expect(r"\ngo")
        time.sleep(2)
        terminal.type("\x03")
        terminal.type("echo status $?\n")
        sums.say(terminal.expect("status 130"), "Ctrl-C ends what runs, not the prompt")
        terminal.type("poweroff -f\n")
        sums.say(terminal.ended() == 0, "poweroff leaves it")
    sums.say(not os.listdir(tmp), "nothing is left")
    terminal = Terminal(tmp)
    sums.say(terminal.expect("starts it"), "a second prompt comes")
    # As a window is closed.
    os.close(terminal.fd)
    sums.say(terminal.ended() is not None, "it ends when the terminal is closed")
    sums.say(not os.listdir(tmp), "and nothing is left")


def main():
    sums = Sums()
    with tempfile.TemporaryDirectory() as tmp:
        check_prompt(sums, tmp)
    return sums.end()


if __name__ == "__main__":
    sys.exit(main())
