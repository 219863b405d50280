"""Definitions a RabbitMQ node loads at its start: users and what each may touch."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass

JSON = dict[str, object]


@dataclass(frozen=True, slots=True)
class Account:
    """A user of the broker and the names it may configure, write and read, as one pattern."""

    name: str
    password: str
    may_touch: str
    tags: tuple[str, ...] = ()


GUEST = Account("guest", "guest", ".*", ("administrator",))


def definitions(accounts: tuple[Account, ...], vhost: str = "/") -> JSON:
    """One virtual host and its users, in RabbitMQ's own form."""
    return {
        "vhosts": [{"name": vhost}],
        "users": [_user(account) for account in accounts],
        "permissions": [_permission(account, vhost) for account in accounts],
    }


def _user(account: Account) -> JSON:
    return {
        "name": account.name,
        "password_hash": _hash(account.password),
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": list(account.tags),
    }


def _permission(account: Account, vhost: str) -> JSON:
    rights = dict.fromkeys(("configure", "write", "read"), account.may_touch)
    return {"user": account.name, "vhost": vhost, **rights}


def _hash(password: str) -> str:
    salt = secrets.token_bytes(4)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()
