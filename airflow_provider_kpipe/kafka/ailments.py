"""Causes of failing connections: clients report them beside the call that waits, which just times out."""

from __future__ import annotations

import logging
import re
from typing import NamedTuple

from confluent_kafka import KafkaError

from airflow_provider_kpipe.contract.client_log import ClientLog

_DETAILS = re.compile(r" \(after .*", re.DOTALL)
_THREAD = re.compile(r"^\[thrd:.*?\]: ")


class _Ailment(NamedTuple):
    """One cause, recognized by one of some codes and by the words with which a client reports it."""

    codes: frozenset[int]
    words: re.Pattern[str]
    remedy: str | None
    is_final: bool = False
    """True if waiting does not help: a broker that is up answers the same settings in the same way later."""
    is_of_address: bool = False
    """True if no broker answers at the address as the connection asks: a mistake in it, or a matter of time."""


_AUTHENTICATION = frozenset({KafkaError._AUTHENTICATION})
_SSL = frozenset({KafkaError._SSL})
_RESOLVE = frozenset({KafkaError._RESOLVE})
_TRANSPORT = frozenset({KafkaError._TRANSPORT})
_ANYTHING = re.compile("")
# The first entry that fits an error is its cause. Of several causes, fix the first one, a final one before others.
_AILMENTS = (
    _Ailment(
        # The client reports the first step of a login with one of these codes, and the last step with the other.
        _AUTHENTICATION | _TRANSPORT,
        re.compile("SASL .*failed: Local: (Broker transport failure|Timed out)"),
        "the broker was gone before it answered the login: see that it stays up, and what stands in front of it",
    ),
    _Ailment(
        _AUTHENTICATION,
        re.compile("Request not valid in current SASL state"),
        "the listener takes no login: set security.protocol of the connection to plaintext or ssl, or name another "
        "listener in bootstrap.servers",
        is_final=True,
    ),
    _Ailment(
        _AUTHENTICATION,
        _ANYTHING,
        "the cluster does not let the connection's user in: fix its login and password (sasl.username, "
        "sasl.password), security.protocol and sasl.mechanism",
        is_final=True,
    ),
    _Ailment(
        _TRANSPORT,
        re.compile(r"SSL routines.*alert .*certificate"),
        "the cluster requires a client certificate: fix ssl.certificate.location and ssl.key.location of "
        "the connection",
        is_final=True,
    ),
    _Ailment(
        _TRANSPORT | _SSL,
        # The listener closes the connection, or answers without encryption.
        re.compile("Disconnected.* in state SSL_HANDSHAKE|wrong version number"),
        "the listener speaks no TLS: set security.protocol of the connection to plaintext or sasl_plaintext, or name "
        "another listener in bootstrap.servers",
        is_of_address=True,
    ),
    _Ailment(
        _SSL,
        _ANYTHING,
        "the cluster and the connection do not trust each other: fix ssl.ca.location or ssl.ca.pem, bootstrap.servers "
        "(the certificates have to name these hosts) and security.protocol of the connection",
        is_final=True,
    ),
    _Ailment(
        _RESOLVE,
        _ANYTHING,
        "the host name cannot be resolved: fix bootstrap.servers of the connection, or the name service",
        is_of_address=True,
    ),
    _Ailment(
        _TRANSPORT,
        # A proxy resets the connection if it finds no broker.
        re.compile("Connection refused|Connect to .* failed: Connection reset"),
        "connection refused: see that the cluster is up, and that host and port in bootstrap.servers of the "
        "connection are right",
        is_of_address=True,
    ),
    _Ailment(
        _TRANSPORT,
        re.compile("Disconnected.* in state APIVERSION_QUERY"),
        "the listener closes connections without TLS, or no broker is behind it: set security.protocol of the "
        "connection to ssl or sasl_ssl, or fix bootstrap.servers",
        is_of_address=True,
    ),
    _Ailment(
        _TRANSPORT,
        re.compile("Disconnected.* in state UP"),
        "the listener closes connections without login: set security.protocol of the connection to sasl_plaintext "
        "or sasl_ssl, and its login and password",
        is_of_address=True,
    ),
    _Ailment(_TRANSPORT, _ANYTHING, None),
)


class Ailments:
    """The last report of each cause since a question was asked. Takes the place of clients' loggers and `error_cb`."""

    def __init__(self) -> None:
        self._said: dict[_Ailment, str] = {}
        self._is_all_down = False
        self._has_answered = False
        self._log = ClientLog()

    def note(self, error: KafkaError) -> None:
        """Take an error. A client calls this from within its poll."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._is_all_down = bool(self._said)
        else:
            self._note(error.code(), error.str())

    def log(self, level: int, form: str, facility: str, client: str, text: str) -> None:
        """Take a log line. A client calls this from within its poll; it reports a hang-up only as a line at info."""
        if level >= logging.ERROR:
            self._log.log(level, form, facility, client, text)
        # A broker that has answered before closes connections when clients are idle, or as it goes down.
        elif facility == "FAIL" and not self._has_answered:
            self._note(KafkaError._TRANSPORT, _THREAD.sub("", text))

    def forget(self) -> None:
        """Forget all causes, since a new question is asked."""
        self._said.clear()
        self._is_all_down = False

    def answered(self) -> None:
        """Remember that the connection works: its address is right."""
        self._has_answered = True

    @property
    def are_final(self) -> bool:
        """True if every broker has rejected the settings or is not there, and at least one has rejected them."""
        return self._is_all_down and any(each.is_final for each in self._said)

    @property
    def mean_nobody_answers(self) -> bool:
        """True if no broker answers at any address as the connection asks, and none has answered before."""
        if not self._said or not self._is_all_down or self._has_answered:
            return False
        return all(each.is_of_address for each in self._said)

    @property
    def remedy(self) -> str | None:
        # A final cause has to be fixed, whatever else passes by itself.
        said = sorted((each for each in _AILMENTS if each in self._said), key=lambda each: not each.is_final)
        return said[0].remedy if said else None

    def __str__(self) -> str:
        return "; ".join(dict.fromkeys(_DETAILS.sub("", each) for each in self._said.values()))

    def _note(self, code: int, text: str) -> None:
        for each in _AILMENTS:
            if code in each.codes and each.words.search(text):
                self._said[each] = text
                return
