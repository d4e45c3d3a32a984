# SPDX-License-Identifier: GPL-2.0-only
"""Arguments of the scripts: bad input is answered by one sentence and status 2."""
import argparse
import sys

from archive import say


def number(kind, least, most):
    """For argparse: a number within these limits."""
    def read(text):
        try:
            value = kind(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text}: {least} to {most} are possible")
        return value
    return read


class Parser(argparse.ArgumentParser):
    def error(self, message):
        say(f"{message}; --help shows what there is")
        sys.exit(2)
