"""``tanist spark check``: judge a history that is too large for one process."""

import sys

import click

from tanist.cli.asked import JSON
from tanist.cli.check import EXIT_ANOMALIES, show_verdicts
from tanist.spark.running import clear_errors
from tanist.spark.session import spark_session


@click.command("check")
@click.argument("histories", nargs=-1, required=True, type=click.Path(exists=True, resolve_path=True))
@click.option("--master", default="local[*]", show_default=True, help="The Spark that does the work.")
@JSON
def check(histories: tuple[str, ...], *, master: str, as_json: bool) -> None:
    """Judge histories of one JSON event a line by the rules of `tanist check`, on Spark.

    HISTORIES are files *.jsonl, or folders of them, all of one history. Exit code 1 if anything is wrong.
    """
    # Not before Spark is known to be here: what follows needs its packages.
    session = spark_session(master, app_name="tanist check")
    from tanist.spark.check.job import judge_history  # noqa: PLC0415

    try:
        with clear_errors():
            verdict = judge_history(session, histories)
    finally:
        session.stop()
    show_verdicts({"history": verdict}, as_json=as_json)
    if not verdict.is_sound:
        sys.exit(EXIT_ANOMALIES)
