"""Brokers: what runs where and how, settings that are changed while they run, and cleaning up."""

from collections.abc import Mapping, Sequence

from tanist.admin.cluster import cluster_info, runtime_info
from tanist.admin.parallel import Told, ask_each
from tanist.admin.rows import Row
from tanist.client.session.wire import Wire
from tanist.model.offsets import LogOffset
from tanist.protocol.bodies.config_text import encode_config
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.sync import ResetMasterFlushOffsetRequest

_READ_AHEAD_MODE = "READ_AHEAD_MODE"


class BrokerRow(Row, frozen=True, kw_only=True):
    """One broker of a cluster and its rates; they are None if it does not answer."""

    cluster_name: str
    broker_name: str
    broker_id: int
    addr: str
    version: str | None
    in_tps: float | None
    out_tps: float | None
    timer_progress: str | None
    page_cache_lock_time_ms: int | None
    hour: float | None
    """The age of the oldest message, in hours."""
    space: float | None
    """How full the disk is, from 0 to 1."""
    is_activated: bool | None


class DayRow(Row, frozen=True, kw_only=True):
    """What one broker took and gave yesterday and today."""

    cluster_name: str
    broker_name: str
    in_total_yesterday: int
    out_total_yesterday: int
    in_total_today: int
    out_total_today: int


async def list_brokers(
    wire: Wire, name_server: str, cluster: str | None = None, *, now_ms: int
) -> list[BrokerRow]:
    """Every broker that the name server knows, with its rates."""
    found = await _figures(wire, name_server, cluster)
    return [
        BrokerRow(
            cluster_name=cluster_name,
            broker_name=broker_name,
            broker_id=broker_id,
            addr=address,
            version=figures.get("brokerVersionDesc"),
            in_tps=first_number(figures.get("putTps")),
            out_tps=first_number(figures.get("getTransferredTps") or figures.get("getTransferedTps")),
            timer_progress=_timer_progress(figures),
            page_cache_lock_time_ms=_whole(figures.get("pageCacheLockTimeMills")),
            hour=_hours(figures, now_ms),
            space=first_number(figures.get("commitLogDiskRatio")),
            is_activated=_truth(figures.get("brokerActive")),
        )
        for cluster_name, broker_name, broker_id, address, figures in found
    ]


async def list_days(wire: Wire, name_server: str, cluster: str | None = None) -> list[DayRow]:
    """How many messages each master took and gave yesterday and today."""
    found = await _figures(wire, name_server, cluster)
    return [
        DayRow(
            cluster_name=cluster_name,
            broker_name=broker_name,
            in_total_yesterday=_between(figures, "msgPutTotalYesterdayMorning", "msgPutTotalTodayMorning"),
            out_total_yesterday=_between(figures, "msgGetTotalYesterdayMorning", "msgGetTotalTodayMorning"),
            in_total_today=_between(figures, "msgPutTotalTodayMorning", "msgPutTotalTodayNow"),
            out_total_today=_between(figures, "msgGetTotalTodayMorning", "msgGetTotalTodayNow"),
        )
        for cluster_name, broker_name, broker_id, _, figures in found
        if broker_id == 0
    ]


def first_number(text: str | None) -> float | None:
    """The first of several rates in one text: that of the last ten seconds.

    >>> first_number("12.5 11.0 9.75")
    12.5
    """
    try:
        return float((text or "").split()[0])
    except (IndexError, ValueError):
        return None


async def update_broker_config(wire: Wire, address: str, changes: Mapping[str, str]) -> None:
    """Change settings of a running broker, which writes them into its file.

    It decides which it lets be changed; a Tanist does all or none.
    """
    command = Command.request(RequestCode.UPDATE_BROKER_CONFIG, body=encode_config(changes))
    await wire.ask(address, command)


async def reset_master_flush_offset(wire: Wire, address: str, offset: int) -> None:
    """Correct how far a slave of RocketMQ believes its master has flushed."""
    header = ResetMasterFlushOffsetRequest(master_flushed_to=LogOffset(offset))
    await wire.ask(address, Command.request(RequestCode.RESET_MASTER_FLUSH_OFFSET, header))


async def set_read_ahead_mode(wire: Wire, addresses: Sequence[str], mode: str) -> list[Told[None]]:
    """Have a broker of RocketMQ read its log ahead (0) or not (1)."""
    return await order_each(
        wire, addresses, RequestCode.SET_COMMITLOG_READ_MODE, ext={_READ_AHEAD_MODE: mode}
    )


async def order_each(
    wire: Wire,
    addresses: Sequence[str],
    code: RequestCode,
    *,
    body: bytes = b"",
    ext: dict[str, str] | None = None,
) -> list[Told[None]]:
    """Order something from each of these brokers whose answer tells nothing but that it is done."""

    async def order(address: str) -> None:
        # Each its own fields: a signature is put among them.
        await wire.ask(address, Command.request(code, ext=None if ext is None else dict(ext), body=body))

    return await ask_each(addresses, order)


async def cold_data_flow(wire: Wire, addresses: Sequence[str]) -> list[Told[str]]:
    """What brokers of RocketMQ hold back of reads from old files; JSON as they write it."""

    async def look(address: str) -> str:
        answer = await wire.ask(address, Command.request(RequestCode.GET_COLD_DATA_FLOW_CTR_INFO))
        return bytes(answer.body).decode("utf-8", "replace")

    return await ask_each(addresses, look)


async def _figures(
    wire: Wire, name_server: str, cluster: str | None
) -> list[tuple[str, str, int, str, dict[str, str]]]:
    info = await cluster_info(wire, name_server)
    places = [
        (cluster_name, broker_name, broker_id, address)
        for cluster_name, names in sorted(info.cluster_addr_table.items())
        if cluster in (None, cluster_name)
        for broker_name in sorted(names)
        for broker_id, address in sorted(info.broker_addr_table[broker_name].broker_addrs.items())
    ]
    told = await ask_each([place[3] for place in places], lambda address: runtime_info(wire, address))
    return [(*place, each.value or {}) for place, each in zip(places, told, strict=True)]


def _hours(figures: Mapping[str, str], now_ms: int) -> float | None:
    """How old the oldest message is."""
    earliest_ms = _whole(figures.get("earliestMessageTimeStamp"))
    return None if earliest_ms is None or earliest_ms <= 0 else (now_ms - earliest_ms) / 3_600_000


def _timer_progress(figures: Mapping[str, str]) -> str | None:
    if "timerReadBehind" not in figures:
        return None
    behind, congested = figures["timerReadBehind"], figures.get("timerCongestNum", "0")
    return f"{behind}({first_number(figures.get('timerEnqueueTps')) or 0:.1f}) {congested}"


def _between(figures: Mapping[str, str], start: str, end: str) -> int:
    return (_whole(figures.get(end)) or 0) - (_whole(figures.get(start)) or 0)


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None


def _truth(text: str | None) -> bool | None:
    return None if text is None else text == "true"
