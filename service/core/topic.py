"""Topic patterns as RabbitMQ matches them: `*` is one word, `#` any number of words, none included."""


def matches(pattern: str, key: str) -> bool:
    """Whether a binding with this pattern takes this routing key."""
    return _fits(words(pattern), words(key))


def words(key: str) -> tuple[str, ...]:
    """The words of a key; the empty key has none, so `#` takes it and `*` does not."""
    return tuple(key.split(".")) if key else ()


def is_pattern(name: str) -> bool:
    """Whether a name stands for more than the one key it spells."""
    return not {"*", "#"}.isdisjoint(words(name))


def vagueness(pattern: str) -> tuple[int, int, int, str]:
    """Sort key, the most specific pattern first: more plain words, then fewer `#`, then more `*`."""
    parts = words(pattern)
    hashes, stars = parts.count("#"), parts.count("*")
    return (hashes + stars - len(parts), hashes, -stars, pattern)


def _fits(pattern: tuple[str, ...], key: tuple[str, ...]) -> bool:
    """Walk the pattern once, keeping every count of words eaten so far: no input makes it slow."""
    eaten = {0}
    for word in pattern:
        if word == "#":
            eaten = set(range(min(eaten), len(key) + 1))
        else:
            eaten = {n + 1 for n in eaten if n < len(key) and word in ("*", key[n])}
        if not eaten:
            return False
    return len(key) in eaten
