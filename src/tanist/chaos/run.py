"""One run: a cluster, clients, one fault, and the verdict on what the clients saw and the replicas hold."""

import asyncio
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tanist.chaos.faults import Fault, Promise, forgotten_s, promise_of
from tanist.chaos.lots import Lot, draw
from tanist.chaos.modes import Mode
from tanist.chaos.outage import SETTLES_US, Outage, outages
from tanist.chaos.site import Site
from tanist.chaos.zookeeper import LeaderHand
from tanist.check.history import Held, Log, Summed, merge_histories
from tanist.check.judging import judge_files
from tanist.check.recording import Recorder, now_us
from tanist.check.verdict import Verdict
from tanist.check.workload import Plan, Workload
from tanist.errors import lone_error
from tanist.model.offsets import LogOffset
from tanist.store.reader import StoreReader
from tanist.up.plan import NAME

TOPIC = "chaos"
_MOST_BROKEN_S = 30.0
_LOOK_S = 0.05
_SUMMED_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What is done. ``seed`` gives the chances of the network, the moment of the fault, its victim."""

    mode: Mode
    fault: Fault
    folder: Path
    seed: int = 0
    before_s: float = 1.5
    """Until the fault, give or take a half, as the seed has it."""
    broken_s: float = 5.0
    after_s: float = 1.5
    producers: int = 3
    consumers: int = 2
    rate: float = 60.0
    zookeeper: str = ""
    leader: LeaderHand | None = None
    """Who strikes the leader of ZooKeeper."""

    @property
    def lot(self) -> Lot:
        return draw(self.seed)

    @property
    def promise(self) -> Promise:
        return promise_of(self.mode, self.fault, self.lot.victim)


class Result(msgspec.Struct, kw_only=True, rename="camel"):
    """What came of a run."""

    mode: str
    fault: str
    seed: int
    victim: str
    """Whom it struck, where that was a matter of chance."""
    verdict: Verdict
    sends: Outage
    reads: Outage
    broken_promises: list[str]
    leaks: list[str]
    """The secrets that came out, and where."""

    @property
    def is_sound(self) -> bool:
        return self.verdict.is_sound and not self.broken_promises and not self.leaks


async def run(plan: RunPlan, on_step: Callable[[str], None] = lambda _: None) -> Result:
    """Break one thing while clients work, mend it, and judge. Raises what keeps the cluster from starting."""
    history = plan.folder / "history"
    site = Site(
        plan.folder,
        plan.mode,
        plan.fault,
        seed=plan.seed,
        victim=plan.lot.victim,
        zookeeper=plan.zookeeper,
        leader=plan.leader,
    )
    on_step("starting")
    async with site:
        workload = Workload(
            Plan(
                namesrv=site.name_server,
                credentials=site.credentials,
                folder=history,
                topic=TOPIC,
                producers=plan.producers,
                consumers=plan.consumers,
                rate=plan.rate,
                # Whoever is to read on while nobody can write needs something left to read.
                read_pause_s=plan.consumers / (plan.producers * plan.rate) * 1.3,
            )
        )
        with lone_error():
            async with asyncio.TaskGroup() as group:
                working = group.create_task(workload.run())
                await _break(plan, site, workload, on_step)
                await asyncio.sleep(plan.after_s)
                workload.end()
                on_step("reading the rest")
        files = working.result()
        await site.wait_in_step()
        await site.show()
        await site.stop()
        files.append(_write_logs(site.stores, history / "replicas.jsonl"))
        leaks = site.leaks()
    on_step("judging")
    sends, reads = outages(merge_histories(files))
    return Result(
        mode=plan.mode.value,
        fault=plan.fault.value,
        seed=plan.seed,
        victim=plan.lot.victim.value,
        verdict=judge_files(files),
        sends=sends,
        reads=reads,
        broken_promises=_broken(plan.promise, sends, reads),
        leaks=leaks,
    )


async def _break(plan: RunPlan, site: Site, workload: Workload, on_step: Callable[[str], None]) -> None:
    await asyncio.sleep(plan.before_s * plan.lot.moment)
    on_step(f"{plan.fault}")
    workload.fault(plan.fault.value, forgets_s=forgotten_s(plan.mode, plan.fault))
    await site.strike()
    if not plan.fault.ends_by_itself:
        await _stay_broken(plan, workload)
    on_step("healing")
    await site.heal()
    await site.wait_in_step()
    workload.fault(plan.fault.value, is_over=True)


async def _stay_broken(plan: RunPlan, workload: Workload) -> None:
    """For the plan's time, and on a busy machine for longer: until what is promised to go on has done so."""
    await asyncio.sleep(SETTLES_US / 1e6)
    before = workload.counts
    await asyncio.sleep(max(plan.broken_s - SETTLES_US / 1e6, 0.0))
    promised = (plan.promise.sends, plan.promise.reads)
    with suppress(TimeoutError):
        async with asyncio.timeout(_MOST_BROKEN_S):
            await _until(
                lambda: all(
                    now > then or not is_promised
                    for is_promised, now, then in zip(promised, workload.counts, before, strict=True)
                )
            )


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - it is a count that grows by the hundred a second.
        await asyncio.sleep(_LOOK_S)


def _write_logs(stores: dict[str, Path], path: Path) -> Path:
    """What each replica holds in the end, read from its files."""
    with Recorder(path) as recorder:
        for replica, root in stores.items():
            ends: dict[str, tuple[int, int]] = {}
            with StoreReader(root) as reader:
                log_end = 0
                for record in reader.records():
                    log_end = record.log_offset + record.size_bytes
                    if record.topic != TOPIC:
                        continue
                    queue = f"{TOPIC}@{NAME}:{record.queue_id}"
                    recorder.write(
                        Held(now_us(), replica, queue, record.queue_offset, bytes(record.body).decode())
                    )
                    first, _ = ends.get(queue, (record.queue_offset, 0))
                    ends[queue] = first, record.queue_offset + 1
                _write_sums(reader, replica, log_end, recorder)
            for queue, (first, end) in ends.items():
                recorder.write(Log(now_us(), replica, queue, first, end))
    return path


def _write_sums(reader: StoreReader, replica: str, log_end: int, recorder: Recorder) -> None:
    """The checksums of all bytes of a log, those between records included, part by part."""
    first = reader.segments.start
    while first < log_end:
        segment = reader.segments.at(LogOffset(first))
        end = min(first - first % _SUMMED_BYTES + _SUMMED_BYTES, segment.end, log_end)
        crc = zlib.crc32(segment.view[first - segment.start : end - segment.start])
        recorder.write(Summed(now_us(), replica, f"log@{NAME}", first, end, crc))
        first = LogOffset(end)


def _broken(promise: Promise, sends: Outage, reads: Outage) -> list[str]:
    said = [("send", promise.sends, sends), ("read", promise.reads, reads)]
    return [
        f"nobody could {what} while it was broken, and the design says somebody can"
        for what, is_promised, outage in said
        if is_promised and not outage.done_while_broken
    ]
