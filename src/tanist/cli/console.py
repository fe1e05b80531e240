"""``tanist console``: pages and REST about a cluster, on this machine alone unless told otherwise."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

from tanist.cli.access import AccessGiven, read_access
from tanist.cli.serving import serve, tell_story
from tanist.console.access.passwords import SALT_BYTES, hash_password
from tanist.console.access.users import Role, User, Users, check_name, read_users
from tanist.errors import ConfigError
from tanist.log import ProcessLog
from tanist.model.host import is_address

DEFAULT_LISTEN = "127.0.0.1:8080"
_NEEDED = ("starlette", "uvicorn", "jinja2")
_MIN_PASSWORD_CHARS = 10


@click.group(invoke_without_command=True)
@click.option(
    "-n",
    "--namesrvAddr",
    "name_servers",
    envvar="NAMESRV_ADDR",
    help="The name servers of the cluster: host:port;host:port.",
)
@click.option(
    "-l", "--listen", default=DEFAULT_LISTEN, show_default=True, help="Where to serve; port 0 for any."
)
@click.option(
    "--coordinator", help="The registry of groups with fixed roles, to know those too that nobody lists."
)
@click.option(
    "--users",
    "users_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Who may log in (adduser). Without it an operator is made for this start, and printed.",
)
@click.option(
    "--audit-log",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where changes are written down. Without it they are kept until the console ends.",
)
@click.option(
    "--plans",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for plans of resets. Without it they are kept until the console ends.",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Serve metrics to Prometheus there, without a login.",
)
@click.option(
    "--certificates",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of what Spark jobs write down: results, and certificates of audits.",
)
@click.option("--webhook", envvar="TANIST_WEBHOOK", help="Who is told of alarms: an http or https address.")
@click.option(
    "--webhook-secret",
    envvar="TANIST_WEBHOOK_SECRET",
    help="What signs that, better by TANIST_WEBHOOK_SECRET.",
)
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    help="The address of a proxy that is believed who asks, and whether over TLS. May be repeated.",
)
@click.option(
    "--tls-certificate",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Serve HTTPS with this certificate, and those that lead to its root.",
)
@click.option(
    "--tls-key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Its key, if that is another file.",
)
@click.option(
    "--control",
    type=click.Path(path_type=Path),
    hidden=True,
    help="The socket of the cluster that tanist up runs, which is told what to kill.",
)
@click.option(
    "--access-key", envvar="TANIST_ACCESS_KEY", help="As whom to ask brokers that have access rules."
)
@click.option("--secret-key", envvar="TANIST_SECRET_KEY", help="Its secret, better by TANIST_SECRET_KEY.")
@click.option(
    "--access-file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="TANIST_ACCESS_FILE",
    help="A file with accessKey, secretKey and the TLS settings by which brokers are asked.",
)
@click.pass_context
def console(
    context: click.Context,
    *,
    name_servers: str | None,
    listen: str,
    coordinator: str | None,
    users_file: Path | None,
    audit_log: Path | None,
    plans: Path | None,
    metrics: str | None,
    certificates: Path | None,
    webhook: str | None,
    webhook_secret: str | None,
    proxies: tuple[str, ...],
    tls_certificate: Path | None,
    tls_key: Path | None,
    control: Path | None,
    access_key: str | None,
    secret_key: str | None,
    access_file: Path | None,
) -> None:
    """Serve pages and REST about a cluster until SIGTERM or SIGINT.

    They show brokers, replication, who of a group is read and why, topics and consumer groups; operators
    change things there. What the pages show is asked of the brokers once for all who look.
    """
    if context.invoked_subcommand is not None:
        return
    if name_servers is None:
        raise click.UsageError("give -n, the name servers of the cluster")
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise click.ClickException(
            f"{', '.join(missing)} is missing: install Tanist with its console, pip install 'tanist[console]'"
        )
    process_log: ProcessLog = context.obj
    tell_story(process_log, unknown=(), source=None)
    host, port = read_listen(listen)
    password: str | None = None
    if users_file is None:
        password = secrets.token_urlsafe(12)
        process_log.hide(password)
        users = Users(made_user("operator", Role.OPERATOR, password))
    else:
        users = read_users(users_file)
    access = read_access(AccessGiven(access_file=access_file, access_key=access_key, secret_key=secret_key))
    secret_key = None if access.credentials is None else access.credentials.secret_key
    for secret in filter(None, (secret_key, webhook_secret)):
        process_log.hide(secret)
    for proxy in proxies:
        if not is_address(proxy):
            raise ConfigError("trusted-proxy", proxy, "the address of a proxy, such as 127.0.0.1; no name")
    # Only here, so that other commands do without the web framework.
    web = import_module("tanist.console.web.serving")
    options = web.ConsoleOptions(
        host=host,
        port=port,
        name_servers=[each.strip() for each in name_servers.split(";") if each.strip()],
        coordinator=coordinator,
        users=users,
        audit_log=audit_log,
        plans=plans,
        metrics=None if metrics is None else read_listen(metrics),
        certificates=certificates,
        webhook=webhook,
        webhook_secret=webhook_secret,
        proxies=proxies,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        control=control,
        access=access,
    )

    @asynccontextmanager
    async def running() -> AsyncGenerator[str]:
        async with web.serving(options) as address:
            login = "" if password is None else f"\nLog in as operator with {password} (made for this start)"
            yield f"The console serves at {address}{login}"

    serve(running)


@console.command()
@click.argument("name")
@click.option("--role", type=click.Choice([role.value for role in Role]), required=True)
@click.option(
    "--users",
    "users_file",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The file; it is made if it is not there.",
)
@click.password_option(help="Asked for if it is not given.")
def adduser(*, name: str, role: str, users_file: Path, password: str) -> None:
    """Add a user to a file, or give one another password or role."""
    keep_user(users_file, made_user(check_name(name), Role(role), password))
    click.echo(f"{name} may log in as {role}; a running console reads the file when it is started again")


def keep_user(users_file: Path, user: User) -> None:
    """Put a user into the file, in the place of who had the name; all others stay."""
    lines = users_file.read_text(encoding="utf-8").splitlines() if users_file.exists() else []
    kept = [line for line in lines if line.partition("=")[0].strip() != user.name]
    text = "\n".join([*kept, f"{user.name}={user.role.value}:{user.password_hash}"]) + "\n"
    users_file.touch(mode=0o600, exist_ok=True)
    users_file.write_text(text, encoding="utf-8")


def made_user(name: str, role: Role, password: str) -> User:
    """A user with this password. Raises ConfigError if it is short."""
    if len(password) < _MIN_PASSWORD_CHARS:
        raise ConfigError("password", "…", f"{_MIN_PASSWORD_CHARS} characters or more")
    return User(name, role, hash_password(password, secrets.token_bytes(SALT_BYTES)))


def read_listen(text: str) -> tuple[str, int]:
    """Host and port. Raises ConfigError."""
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdecimal() or int(port) >= 1 << 16:
        raise ConfigError("listen", text, "host:port, such as 127.0.0.1:8080")
    return host.removeprefix("[").removesuffix("]"), int(port)
