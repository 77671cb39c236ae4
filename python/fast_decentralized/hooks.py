"""What the user wants to be called."""
from __future__ import annotations

import copy
import weakref
from typing import Any, Callable

from .observers import METHODS


class Hooks:
    """What the user wants to be called. The library holds weak references: what it has is unknown to Python's garbage
    collector, which would free no worker whose callback refers to it."""
    NAMES = ("log", "on_round", "on_suspect", "on_healed")

    def __init__(self, log: Any, on_round: Any, on_suspect: Any, on_healed: Any) -> None:
        self.log, self.on_round, self.on_suspect, self.on_healed = log, on_round, on_suspect, on_healed
        self.listeners: list[Any] = []
        self.rules: list[Any] = []

    def weak(self) -> dict[str, Any]:
        this = weakref.ref(self)

        def call_of(name: str) -> Callable[..., Any]:
            def call(*arguments: Any) -> None:
                hooks = this()
                if hooks is not None:
                    getattr(hooks, name)(*arguments)

            return call

        return {name: None if getattr(self, name) is None else call_of(name) for name in self.NAMES}


class WeakListener:
    """An observer that Hooks keeps."""

    def __init__(self, hooks: Hooks, observer: Any) -> None:
        self._name = repr(observer)
        place, this = len(hooks.listeners), weakref.ref(hooks)
        hooks.listeners.append(observer)

        def method_of(name: str) -> Callable[[Any], None]:
            def method(event: Any) -> None:
                kept = this()
                if kept is not None:
                    getattr(kept.listeners[place], name)(event)

            return method

        for name in METHODS:
            if hasattr(observer, name):
                setattr(self, name, method_of(name))

    def __repr__(self) -> str:  # in messages about what a method has raised
        return self._name


class WeakRule:
    """A rule that Hooks keeps, and its copies."""

    def __init__(self, hooks: Hooks, rule: Any) -> None:
        self._hooks, self._place = weakref.ref(hooks), len(hooks.rules)
        hooks.rules.append(rule)

    def __getattr__(self, name: str) -> Any:
        hooks = None if name.startswith("__") else self._hooks()
        if hooks is None:
            raise AttributeError(name)
        return getattr(hooks.rules[self._place], name)

    def __copy__(self) -> WeakRule:
        hooks = self._hooks()
        return self if hooks is None else WeakRule(hooks, copy.copy(hooks.rules[self._place]))
