"""Whom a job asks and as whom, as the options that the formats have for it.

The sources and the sink know options and nothing else, for that is all that Spark hands to its workers. What
an operator gives by file, flag or environment is an ``Access``: here it becomes options.
"""

from tanist.admin.asking import Access


def cluster_options(namesrv: str, access: Access | None = None) -> dict[str, str]:
    """The options by which ``rocketmq`` finds the brokers of a cluster and is let in there."""
    given = access or Access()
    options = {"namesrv": namesrv}
    if given.credentials is not None:
        options |= {"accessKey": given.credentials.access_key, "secretKey": given.credentials.secret_key}
        if given.credentials.security_token is not None:
            options["securityToken"] = given.credentials.security_token
    if given.tls.tls_enable:
        files = {
            "tlsClientCertPath": given.tls.tls_client_cert_path,
            "tlsClientKeyPath": given.tls.tls_client_key_path,
            "tlsClientKeyPassword": given.tls.tls_client_key_password,
            "tlsClientTrustCertPath": given.tls.tls_client_trust_cert_path,
        }
        options["tlsEnable"] = "true"
        options["tlsClientAuthServer"] = str(given.tls.tls_client_auth_server).lower()
        options |= {name: value for name, value in files.items() if value}
    return options
