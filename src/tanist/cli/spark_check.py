"""``tanist spark check``: judge a history that is too large for one process."""

import sys

import click

from tanist.cli.asked import JSON
from tanist.cli.check import EXIT_ANOMALIES, show_verdicts
from tanist.cli.spark_job import CONF, MASTER, read_conf, show_progress
from tanist.spark.running import spark_workers
from tanist.spark.watching import watched


@click.command("check")
@click.argument("histories", nargs=-1, required=True, type=click.Path(exists=True, resolve_path=True))
@MASTER
@CONF
@JSON
def check(histories: tuple[str, ...], *, master: str, conf: tuple[str, ...], as_json: bool) -> None:
    """Judge histories of one JSON event a line by the rules of `tanist check`, on Spark.

    HISTORIES are files *.jsonl, or folders of them, all of one history. Exit code 1 if anything is wrong.
    """
    with (
        spark_workers(master, job="check", settings=read_conf(conf)) as workers,
        watched(workers.session, "check", show_progress),
    ):
        from tanist.spark.check.job import judge_history  # noqa: PLC0415 - it needs Spark.

        verdict = judge_history(workers.session, histories)
    show_verdicts({"history": verdict}, as_json=as_json)
    if not verdict.is_sound:
        sys.exit(EXIT_ANOMALIES)
