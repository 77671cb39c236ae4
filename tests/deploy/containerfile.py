"""Reads deploy/container/Containerfile: its stages, and what an image of the last one is set to. Not a reader of all files
of this format: it knows what this one has."""
import pathlib
import re
import shlex

PATH = pathlib.Path(__file__).resolve().parents[2] / "deploy/container/Containerfile"


class Stage:
    """From FROM to the next FROM: (keyword, words) in order."""

    def __init__(self, base, name):
        self.base, self.name, self.instructions = base, name, []

    def all(self, keyword):
        return [text for known, text in self.instructions if known == keyword]

    def last(self, keyword, default=None):
        return next(reversed(self.all(keyword)), default)

    def pairs(self, keyword):
        """Of LABEL and ENV: NAME=VALUE, with the quotes of a shell."""
        return dict(word.partition("=")[::2] for text in self.all(keyword) for word in shlex.split(text))

    def arguments(self):
        return {text.partition("=")[0] for text in self.all("ARG")}


def instructions(text):
    lines = [line for line in text.splitlines() if not re.match(r"\s*(#|$)", line)]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        keyword, _, rest = line.partition(" ")
        yield keyword, rest.strip()


def read(text):
    """(the stages, the arguments before the first one with their defaults)."""
    stages, before = [], {}
    for keyword, rest in instructions(text):
        if keyword == "FROM":
            base, _, name = rest.partition(" AS ")
            stages.append(Stage(base, name))
        elif stages:
            stages[-1].instructions.append((keyword, rest))
        else:
            before.update([rest.partition("=")[::2]])
    return stages, before
