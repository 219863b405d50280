"""The two lanes: the same verdicts, by bytes and by subscribers."""

from __future__ import annotations

LANE = "DLO_DLQ_PROCESSOR__LANE"
LANES = ("wire", "faststream")
# On the wire: one that declares and mends, one that publishes, one that consumes.
CONNECTIONS = {"wire": 3, "faststream": 2}
