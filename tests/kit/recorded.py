"""Dead letters as other frameworks leave them: the headers of one recorded message each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Recorded:
    """A message of one dialect, and what an operator should read out of it."""

    dialect: str
    queue: str
    """The dead-letter queue that such a message lies in."""
    headers: Mapping[str, str | int]
    origin: str
    error_type: str
    place: str
    title: str
    retries: int = 0


SPRING = Recorded(
    "Spring AMQP",
    "invoices.dlq",
    {
        "x-exception-message": "invoice 4711 has no customer",
        "x-exception-stacktrace": (
            "org.springframework.amqp.rabbit.support.ListenerExecutionFailedException: "
            "Listener method 'void com.acme.billing.InvoiceListener.on(com.acme.Invoice)' "
            "threw exception\n"
            "\tat org.springframework.amqp.rabbit.listener.adapter.MessagingMessageListenerAdapter"
            ".invokeHandler(MessagingMessageListenerAdapter.java:270)\n"
            "\tat java.base/java.lang.Thread.run(Thread.java:833)\n"
            "Caused by: com.acme.billing.NoCustomer: invoice 4711 has no customer\n"
            "\tat java.base/java.util.Optional.orElseThrow(Optional.java:403)\n"
            "\tat com.acme.billing.Customers.of(Customers.java:58)\n"
            "\tat com.acme.billing.InvoiceListener.on(InvoiceListener.java:31)\n"
            "\t... 9 more\n"
        ),
        "x-original-exchange": "",
        "x-original-routingKey": "invoices",
    },
    origin="invoices",
    error_type="com.acme.billing.NoCustomer",
    place="com.acme.billing.Customers.of (Customers.java:58)",
    title="com.acme.billing.NoCustomer in com.acme.billing.Customers.of (Customers.java:58)",
)
MASSTRANSIT = Recorded(
    "MassTransit",
    "submit-order_error",
    {
        "MT-Reason": "fault",
        "MT-Fault-ExceptionType": "Acme.Orders.CreditExceeded",
        "MT-Fault-Message": "The credit of customer 42 is exceeded by 12.50",
        "MT-Fault-StackTrace": (
            "   at Acme.Orders.Credit.Check(Customer customer) in /src/Orders/Credit.cs:line 77\n"
            "   at Acme.Orders.SubmitOrderConsumer.Consume(ConsumeContext`1 context) "
            "in /src/Orders/SubmitOrderConsumer.cs:line 25\n"
            "   at MassTransit.Middleware.ConsumerMessageFilter`2.Send(ConsumeContext`1 context)\n"
        ),
        "MT-Fault-ConsumerType": "Acme.Orders.SubmitOrderConsumer",
        "MT-Fault-MessageType": "Acme.Orders.SubmitOrder",
        "MT-Fault-InputAddress": "rabbitmq://localhost/submit-order?temporary=true",
        "MT-Fault-Timestamp": "2026-09-26T18:02:03.5080760Z",
        "MT-Fault-RetryCount": "3",
        "MT-Host-MachineName": "web-1",
    },
    origin="submit-order",
    error_type="Acme.Orders.CreditExceeded",
    place="Acme.Orders.Credit.Check (Credit.cs:77)",
    title="Acme.Orders.CreditExceeded in Acme.Orders.Credit.Check (Credit.cs:77)",
    retries=3,
)
NSERVICEBUS = Recorded(
    "NServiceBus",
    "error",
    {
        "NServiceBus.MessageId": "1fbc0000-caae-ab74-be6a-08df1bf84509",
        "NServiceBus.EnclosedMessageTypes": "Acme.Shipping.ShipOrder, Acme.Messages",
        "NServiceBus.FailedQ": "shipping@WEB-2",
        "NServiceBus.ExceptionInfo.ExceptionType": "System.InvalidOperationException",
        "NServiceBus.ExceptionInfo.Message": "No carrier for order 99",
        "NServiceBus.ExceptionInfo.Source": "Acme.Shipping",
        "NServiceBus.ExceptionInfo.StackTrace": (
            "System.InvalidOperationException: No carrier for order 99\r\n"
            "   at System.Linq.ThrowHelper.ThrowNoElementsException()\r\n"
            "   at Acme.Shipping.ShipOrderHandler.Handle(ShipOrder message, "
            "IMessageHandlerContext context) in C:\\src\\ShipOrderHandler.cs:line 18\r\n"
            "   at NServiceBus.InvokeHandlerTerminator.Terminate(IInvokeHandlerContext context)\r\n"
        ),
        "NServiceBus.TimeOfFailure": "2026-11-17 21:14:03:123456 Z",
        "NServiceBus.ProcessingEndpoint": "shipping",
    },
    origin="shipping",
    error_type="System.InvalidOperationException",
    place="Acme.Shipping.ShipOrderHandler.Handle (ShipOrderHandler.cs:18)",
    title=(
        "System.InvalidOperationException in "
        "Acme.Shipping.ShipOrderHandler.Handle (ShipOrderHandler.cs:18)"
    ),
)
EVENT_BUS = Recorded(
    "event bus",
    "wms.dlq.wms-cincout",
    {
        "x-original-queue": "wms.queue.wms-cincout",
        "x-final-status-code": 503,
        "x-final-error": "Service Unavailable (request 8812)",
        "x-final-retry-count": 10,
    },
    origin="",
    error_type="HTTP 503",
    place="",
    title="HTTP 503: Service Unavailable (request <n>)",
    retries=10,
)
KDLQ = Recorded(
    "KDLQ",
    "kdlq.dead",
    {"KDLQ_Redelivered": 2, "KDLQ_Kills": 1, "KDLQ_PrcMarker": "orders-processor"},
    origin="",
    error_type="",
    place="",
    title="unknown in an unknown queue",
    retries=2,
)
FRAMEWORKS = (SPRING, MASSTRANSIT, NSERVICEBUS)
ALL = (*FRAMEWORKS, EVENT_BUS, KDLQ)
