"""What ails the connections of clients: librdkafka says it to a callback, while the call that waits just times out."""

from __future__ import annotations

import re

from confluent_kafka import KafkaError

_DETAILS = re.compile(r" \(after .*", re.DOTALL)
# No broker that is up does anything else for the same settings a while later.
_REFUSED_SETTINGS = {
    KafkaError._AUTHENTICATION: "the cluster does not let the connection's user in: mend its login and password "
    "(sasl.username, sasl.password), security.protocol and sasl.mechanism",
    KafkaError._SSL: "the cluster and the connection do not trust each other: mend ssl.ca.location or ssl.ca.pem, "
    "bootstrap.servers (the certificates have to name these hosts) and security.protocol of the connection",
}
_NOBODY_THERE = {
    KafkaError._RESOLVE: "no such host is known: mend bootstrap.servers of the connection, or the name service",
    KafkaError._TRANSPORT: "nobody listens there: see that the cluster is up, and that host and port in "
    "bootstrap.servers of the connection are right",
}


class Ailments:
    """The last error of each kind since the last answer."""

    def __init__(self) -> None:
        self._last: dict[int, KafkaError] = {}
        self._is_all_down = False

    def note(self, error: KafkaError) -> None:
        """Is called from within a client's poll."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._is_all_down = bool(self._last)
        elif error.code() in _REFUSED_SETTINGS or error.code() in (KafkaError._RESOLVE, KafkaError._TRANSPORT):
            self._last[error.code()] = error

    def forget(self) -> None:
        self._last.clear()
        self._is_all_down = False

    @property
    def are_final(self) -> bool:
        """Whether every broker has refused the settings, or is not there, and one has refused them."""
        return self._is_all_down and any(code in _REFUSED_SETTINGS for code in self._last)

    @property
    def mean_nobody_is_there(self) -> bool:
        """Whether all addresses are unknown or refuse connections."""
        return self._is_all_down and bool(self._last) and all(map(_is_absence, self._last.values()))

    @property
    def remedy(self) -> str | None:
        for code, remedy in (_REFUSED_SETTINGS | _NOBODY_THERE).items():
            if code in self._last and (code != KafkaError._TRANSPORT or _is_absence(self._last[code])):
                return remedy
        return None

    def __str__(self) -> str:
        return "; ".join(_DETAILS.sub("", each.str()) for each in self._last.values())


def _is_absence(error: KafkaError) -> bool:
    if error.code() == KafkaError._TRANSPORT:
        return "Connection refused" in error.str()
    return error.code() == KafkaError._RESOLVE
