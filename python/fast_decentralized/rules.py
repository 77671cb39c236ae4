"""Rules of decentralized training written with NumPy."""
from __future__ import annotations

from . import _core
from .hooks import Hooks, WeakRule


class Rule:
    """How a worker computes its next weights. Derive from it and override publish() and combine().

        class Damped(fast.Rule):
            name = "damped"

            def combine(self, block):
                block.current += 0.5 * block.pull[0]

        worker = fast.Worker(model, algorithm=Damped())

    A rule is elementwise arithmetic: it is called with blocks of a few thousand elements each, several
    times a round. Each worker uses a copy of the object.
    """
    name = ""  #: for messages; that of the class if it is empty
    summary = ""  #: the rule in one line
    source = ""  #: paper and equation
    parameters = ""  #: text that is equal on all workers, as "share=0.5"
    publishes_after_step = False
    payload_vectors = 1  #: vectors of the model's size sent to each neighbor, 1 to 8
    state_vectors = 0  #: vectors of the model's size kept between rounds, up to 8
    mixing = "doubly_stochastic"  #: what it needs of the mixing matrix
    publishes_weights_apart = False  #: payload 0 is not what the mean model is made of
    remembers_neighbors = False  #: the state refers to what neighbors have sent
    passes_mass = False  #: readers divide what is sent; always so with mixing "column_stochastic"
    needs_static_topology = False
    needs_learning_rate = False
    why_exact = ""  #: why codecs that lose something are refused; empty: they fit

    def start(self, block: _core.Block) -> None:
        """Once with the initial weights in block.current."""

    def publish(self, block: _core.Block) -> None:
        """Fills block.payload. By default the weights."""
        block.payload[0][:] = block.current

    def combine(self, block: _core.Block) -> None:
        """Leaves the worker's next weights in block.current. By default plain averaging."""
        block.current[:] += block.pull[0]

    def _handle(self, hooks: Hooks) -> _core.RuleHandle:
        if not self.name:
            self.name = type(self).__name__
        return _core.rule_of(WeakRule(hooks, self))
