"""The two lanes: the same verdicts, by bytes and by subscribers."""

from __future__ import annotations

import pytest

LANE = "DLO_DLQ_PROCESSOR__LANE"
LANES = ("wire", "faststream")
BOTH_LANES = pytest.mark.parametrize("lane", LANES, indirect=True, scope="module")
# On the wire: one that declares and mends, the post of the others, one that publishes, one that consumes.
CONNECTIONS = {"wire": 4, "faststream": 2}
