"""A broker that wants to know who asks, over connections that may be encrypted."""

from __future__ import annotations

import ipaddress
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from airflow_provider_kpipe.sandbox import SandboxBroker
from airflow_provider_kpipe.sandbox.ports import free_ports

USER, OTHER_USER, PASSWORD = "kpipe", "kpipe-2", "the-right-one"


class SecureBroker(SandboxBroker):
    """Listens four times: in the open (for the test itself), with SASL PLAIN, with TLS, and with both."""

    def __init__(self, certificates: Path, **more: str) -> None:
        self.authority, keystore = make_certificates(certificates)
        *ports, self._sasl, self._ssl, self._both = free_ports(5)
        listeners = [
            f"{name}://127.0.0.1:{port}"
            for name, port in {
                "PLAINTEXT": ports[0],
                "CONTROLLER": ports[1],
                "SASL_PLAINTEXT": self._sasl,
                "SSL": self._ssl,
                "SASL_SSL": self._both,
            }.items()
        ]
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        users = " ".join(f'user_{user}="{PASSWORD}"' for user in (USER, OTHER_USER))
        overrides = {
            "listeners": ",".join(listeners),
            "advertised.listeners": ",".join(each for each in listeners if not each.startswith("CONTROLLER")),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN",
            **{
                f"listener.name.{name}.plain.sasl.jaas.config": f"{login} {users};"
                for name in ("sasl_plaintext", "sasl_ssl")
            },
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keystore),
            **more,
        }
        super().__init__(overrides=overrides)
        self._ports = tuple(ports)

    def reached_as(self, listener: str, protocol: str) -> dict[str, str]:
        """Settings of a client that takes a listener for one of another protocol; everything else is right."""
        authority = {"ssl.ca.location": str(self.authority)} if "ssl" in protocol else {}
        login = _login(PASSWORD) if "sasl" in protocol else {}
        return self._settings(self.port_of(listener), protocol, **authority, **login)

    def port_of(self, listener: str) -> int:
        ports = {"plaintext": self._ports[0], "sasl_plaintext": self._sasl, "ssl": self._ssl, "sasl_ssl": self._both}
        return ports[listener]

    def sasl(self, password: str = PASSWORD, user: str = USER) -> dict[str, str]:
        """Settings of a client that says who it is in the open."""
        return self._settings(self._sasl, "sasl_plaintext", **_login(password, user))

    def ssl(self, authority: Path | None = None) -> dict[str, str]:
        """Settings of a client that trusts an authority."""
        return self._settings(self._ssl, "ssl", **{"ssl.ca.location": str(authority or self.authority)})

    def sasl_ssl(self, password: str = PASSWORD) -> dict[str, str]:
        return self._settings(self._both, "sasl_ssl", **{"ssl.ca.location": str(self.authority)}, **_login(password))

    def _settings(self, port: int, protocol: str, **more: str) -> dict[str, str]:
        return {"bootstrap.servers": f"127.0.0.1:{port}", "security.protocol": protocol, **more}


def _login(password: str, user: str = USER) -> dict[str, str]:
    return {"sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": password}


def make_certificates(folder: Path) -> tuple[Path, Path]:
    """A new authority, and a key of a broker on this machine with the certificate that the authority gives it."""
    folder.mkdir(parents=True, exist_ok=True)
    authority, keystore = folder / "authority.pem", folder / "keystore.pem"
    own, its = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority in {folder.name}")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    certified = _certificate(issuer, issuer, own, own.public_key(), x509.BasicConstraints(ca=True, path_length=None))
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    broker = _certificate(subject, issuer, own, its.public_key(), address)
    encoding = serialization.Encoding.PEM
    authority.write_bytes(certified.public_bytes(encoding))
    key = its.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    keystore.write_bytes(key + broker.public_bytes(encoding))
    return authority, keystore


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    signed_by: ec.EllipticCurvePrivateKey,
    key: ec.EllipticCurvePublicKey,
    extension: x509.ExtensionType,
) -> x509.Certificate:
    now = datetime.now(timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(extension, critical=True)
        .sign(signed_by, hashes.SHA256())
    )
