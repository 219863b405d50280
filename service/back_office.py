"""The back office: what the settings say of the work on the ledger, beside the flows."""

from __future__ import annotations

from service.core.alerting import Patience
from service.ledger.book import Book
from service.office.channels import Apprise, NoApprise, Webhook
from service.office.watch import Channel, Watch
from service.settings import BadSettings, Fault, Settings


def watch_of(settings: Settings, book: Book) -> Watch:
    """Who is told of new causes."""
    own = settings.alerts
    return Watch(book, channels_of(settings), Patience(own.digest_after, own.digest_window))


def channels_of(settings: Settings) -> tuple[Channel, ...]:
    """The channels that the settings name; Apprise without its extra is a fault of the settings."""
    own, channels = settings.alerts, list[Channel]()
    if url := own.webhook.get_secret_value():
        channels.append(Webhook(url))
    if urls := [url.get_secret_value() for url in own.apprise]:
        try:
            channels.append(Apprise(urls))
        except NoApprise as missing:
            raise BadSettings([Fault("alerts.apprise", str(missing))]) from None
    return tuple(channels)
