"""A job that trains one model together with jobs at other places."""
from __future__ import annotations

import dataclasses
import math
from typing import Any

from . import _core


@dataclasses.dataclass(frozen=True, kw_only=True)
class Site:
    """One place of several that train one model: what a Worker is given as ``site``. The ranks of a job are one site.

        site = fast.Site("laptop", "tls://nats.example.org:4222/run7", every=50, credentials="laptop.creds")
        worker = fast.Worker(net, site=site)

    The sites reach each other by a NATS server alone. The worker's constructor blocks until the site takes part. If others train
    already, it takes over their weights, and ``worker.rounds`` begins at their number. All ranks of a job give the same site, and
    ``worker.site_stats`` of rank 0 has what it has done.
    """
    name: str = dataclasses.field(kw_only=False)  #: of this site: no other site of the run has it
    url: str = dataclasses.field(kw_only=False)  #: nats://HOST:PORT/RUN or tls://HOST:PORT/RUN
    every: int = 50  #: rounds between two exchanges with other sites
    algorithm: str = "gasloc"  #: what an exchange does: gasloc, noloco or diloco
    algorithm_options: dict[str, Any] | None = None  #: of that rule: {"rate": 0.7}
    topology: str = "ring"  #: which sites read each other: a name that fits any number of them
    codec: str = "identity"  #: of messages to other sites: identity, bf16, fp16, int8; with staleness 0 also int4, int2 and sparse=0.01
    samples: float = 1  #: what a step of this site counts, relative to the other sites': the number of its samples
    staleness: float = 0  #: 0: an exchange waits for the other sites; math.inf: it never waits
    patience: float = 60  #: seconds: at staleness 0, a site that lives but has not published for so long is left out
    expect: int = 1  #: the first exchange waits until so many sites are there
    credentials: str = ""  #: the file that lets this site in
    ca: str = ""  #: a file of certificates that are trusted beside those of the system

    def options(self) -> dict[str, Any]:
        """As keyword arguments of a Worker."""
        if self.staleness not in (0, math.inf):
            raise _core.ArgumentError(f"Site: staleness {self.staleness}; 0 or math.inf is required")
        values = {"site": self.name, "site_url": self.url, "site_every": self.every, "site_algorithm": self.algorithm,
                  "site_topology": self.topology, "site_codec": self.codec, "site_samples": self.samples, "site_staleness": self.staleness, "site_expect": self.expect, "site_patience": self.patience}
        values |= {"site_algorithm_option": self.algorithm_options} if self.algorithm_options else {}
        values |= {"site_credentials": self.credentials} if self.credentials else {}
        return values | ({"site_ca": self.ca} if self.ca else {})


def site_options(site: Any) -> dict[str, Any]:
    """Of a worker that is that site; none without one."""
    if site is None:
        return {}
    if not isinstance(site, Site):
        raise _core.ArgumentError(f"Worker: site is a {type(site).__name__}; give a fast.Site")
    return site.options()
