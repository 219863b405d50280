"""How a dependency is, in one word and one sentence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """One dependency, now."""

    ok: bool
    says: str
