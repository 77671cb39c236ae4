from ._core import MessageEvent, PeerEvent, PhaseEvent, ScalarEvent

METHODS: set[str]

def require_known_methods(kind: type) -> None: ...

class Observer:
    """Base class. Override what you need; methods that a class does not have cost nothing."""
    def on_phase(self, event: PhaseEvent) -> None:
        """A part of a round has ended."""
    def on_message(self, event: MessageEvent) -> None:
        """The worker has published, or has combined a neighbor's publication."""
    def on_peer(self, event: PeerEvent) -> None:
        """A worker is a suspect, is back, or has replaced its weights."""
    def on_scalar(self, event: ScalarEvent) -> None:
        """A number with a name."""
