#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks the prompt of scripts/run --shell on a terminal: commands, Ctrl-C, the way out, and that nothing is left in
the folder for temporary files, also when the terminal is closed. Last line: 'N passed, N failed, N skipped'."""
import os
import pty
import re
import select
import signal
import sys
import tempfile
import time
from pathlib import Path

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
        while time.monotonic() < end:
            found = re.search(pattern, self.seen)
            if found:
                self.seen = self.seen[found.end():]
                return True
            if select.select([self.fd], [], [], 1)[0]:
                try:
                    self.seen += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    return bool(re.search(pattern, self.seen))
        return False

    def type(self, text):
        os.write(self.fd, text.encode())

    def close(self):
        """As a window is closed."""
        os.close(self.fd)
        self.fd = None

    def ended(self):
        """The exit status; None: it has not ended in time."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return status
            if self.fd is None:
                time.sleep(0.2)
            elif select.select([self.fd], [], [], 0.2)[0]:
                try:
                    os.read(self.fd, 65536)
                except OSError:
                    time.sleep(0.2)
        return None


def main():
    results = []

    def check(what, good):
        results.append(good)
        print(f"{'ok' if good else 'not ok'} - {what}", flush=True)
        return good

    with tempfile.TemporaryDirectory() as tmp:
        terminal = Terminal(tmp)
        if check("a prompt comes", terminal.expect("starts it")):
            terminal.type("echo $((40 + 2)) $(cat /sys/kernel/sched_ext/state)\n")
            check("it runs commands", terminal.expect("42 disabled"))
            terminal.type("echo limit $SCX_TIMEOUT_MS\n")
            check("the watchdog has patience", terminal.expect(r"\nlimit 30000"))
            terminal.type("echo go; sleep 1000\n")
            terminal.expect(r"\ngo")
            time.sleep(2)
            terminal.type("\x03")
            terminal.type("echo status $?\n")
            check("Ctrl-C ends what runs, not the prompt", terminal.expect("status 130"))
            terminal.type("poweroff -f\n")
            check("poweroff leaves it", terminal.ended() == 0)
        check("nothing is left", not os.listdir(tmp))
        terminal = Terminal(tmp)
        check("a second prompt comes", terminal.expect("starts it"))
        terminal.close()
        check("it ends when the terminal is closed", terminal.ended() is not None)
        check("and nothing is left", not os.listdir(tmp))
    passed = sum(results)
    print(f"{passed} passed, {len(results) - passed} failed, 0 skipped")
    return int(passed < len(results))


if __name__ == "__main__":
    sys.exit(main())
