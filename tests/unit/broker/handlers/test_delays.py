import asyncio
from pathlib import Path

from tanist.broker.delays.delivery import Delivery
from tanist.broker.handlers import delays
from tanist.protocol.bodies.sync import DelayOffsetTable, decode_timer_check_point
from tanist.protocol.codes import RequestCode
from tanist.protocol.java_json import decode_java_json
from tests.support.broker_tables import Asker
from tests.support.clocks import FakeClock
from tests.support.conditions import turns
from tests.support.messages import make_message
from tests.support.working_broker import working_broker


def test_a_slave_is_told_how_far_delayed_messages_are_delivered(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = FakeClock()
        async with working_broker(tmp_path, clock=clock) as broker:
            state = broker.state
            delivery = Delivery(state)
            state.store.dispatcher.listeners.append(delivery.on_indexed)
            for message in (
                make_message(1, DELAY="2", UNIQ_KEY="a"),
                make_message(2, TIMER_DELAY_SEC="1", UNIQ_KEY="b"),
            ):
                state.writer.append(state.placing.place(message, clock.now_ms()))
            await turns(2)
            clock.advance_ms(6_000)
            while delivery.turn():
                await turns(1)
            finish = state.delays.start_save_timers()
            assert finish is not None
            finish()

            asker = Asker(delays.routes(state))
            answer = asker.ask(RequestCode.GET_ALL_DELAY_OFFSET)
            assert decode_java_json(answer.body, DelayOffsetTable).offset_table == {2: 1}
            point = decode_timer_check_point(asker.ask(RequestCode.GET_TIMER_CHECK_POINT).body)
            assert (point.last_timer_queue_offset, point.master_timer_queue_offset) == (1, 1)
            assert point.last_timer_log_flushed_to == 52
            assert point.last_read_time_ms == clock.now_ms()
            assert point.data_version.counter == 1

    asyncio.run(scenario())
