"""The names of message properties that clients and brokers give a meaning to.

They are RocketMQ's spelling, to the letter: they travel on the wire and lie in the log.
"""

from typing import Final

# What a producer says about its message.
KEYS: Final = "KEYS"
TAGS: Final = "TAGS"
UNIQ_KEY: Final = "UNIQ_KEY"
WAIT: Final = "WAIT"
SHARDING_KEY: Final = "__SHARDINGKEY"
INSTANCE_ID: Final = "INSTANCE_ID"

# Delayed and timed messages. The real target waits in REAL_TOPIC and REAL_QID.
DELAY: Final = "DELAY"
REAL_TOPIC: Final = "REAL_TOPIC"
REAL_QID: Final = "REAL_QID"
TIMER_DELAY_SEC: Final = "TIMER_DELAY_SEC"
TIMER_DELAY_MS: Final = "TIMER_DELAY_MS"
TIMER_DELIVER_MS: Final = "TIMER_DELIVER_MS"
TIMER_OUT_MS: Final = "TIMER_OUT_MS"
TIMER_ENQUEUE_MS: Final = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS: Final = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES: Final = "TIMER_ROLL_TIMES"
TIMER_DEL_UNIQKEY: Final = "TIMER_DEL_UNIQKEY"

# Retries and dead letters. The first two lie in the log, the next two are hints of a send.
RETRY_TOPIC: Final = "RETRY_TOPIC"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
RECONSUME_TIME: Final = "RECONSUME_TIME"
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
DLQ_ORIGIN_TOPIC: Final = "DLQ_ORIGIN_TOPIC"
DLQ_ORIGIN_MESSAGE_ID: Final = "DLQ_ORIGIN_MESSAGE_ID"

# Transactions.
TRAN_MSG: Final = "TRAN_MSG"
PGROUP: Final = "PGROUP"
TRANSACTION_ID: Final = "__transactionId__"
TRANSACTION_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
TRAN_PREPARED_QUEUE_OFFSET: Final = "TRAN_PREPARED_QUEUE_OFFSET"
CHECK_IMMUNITY_TIME_IN_SECONDS: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"

# What a broker adds when it stores a message.
MSG_REGION: Final = "MSG_REGION"
TRACE_ON: Final = "TRACE_ON"
CLUSTER: Final = "CLUSTER"
RECORD_CRC: Final = "__CRC32#"

# What a consumer adds after it pulled; these never travel.
MIN_OFFSET: Final = "MIN_OFFSET"
MAX_OFFSET: Final = "MAX_OFFSET"
CONSUME_START_TIME: Final = "CONSUME_START_TIME"

# Request and reply.
CORRELATION_ID: Final = "CORRELATION_ID"
REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
TTL: Final = "TTL"
MSG_TYPE: Final = "MSG_TYPE"
PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"
ARRIVE_TIME: Final = "ARRIVE_TIME"

# Pop consumption and batches inside one record.
POP_CK: Final = "POP_CK"
FIRST_POP_TIME: Final = "1ST_POP_TIME"
INNER_NUM: Final = "INNER_NUM"
INNER_BASE: Final = "INNER_BASE"

RESERVED: Final = frozenset(
    {
        *(KEYS, TAGS, UNIQ_KEY, WAIT, SHARDING_KEY),
        *(DELAY, REAL_TOPIC, REAL_QID, TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS, TIMER_OUT_MS),
        *(TIMER_ENQUEUE_MS, TIMER_DEQUEUE_MS, TIMER_ROLL_TIMES, TIMER_DEL_UNIQKEY),
        *(RETRY_TOPIC, ORIGIN_MESSAGE_ID, RECONSUME_TIME, MAX_RECONSUME_TIMES),
        *(DLQ_ORIGIN_TOPIC, DLQ_ORIGIN_MESSAGE_ID),
        *(TRAN_MSG, PGROUP, TRANSACTION_ID, TRANSACTION_CHECK_TIMES, TRAN_PREPARED_QUEUE_OFFSET),
        *(MSG_REGION, TRACE_ON, CLUSTER, RECORD_CRC, MIN_OFFSET, MAX_OFFSET, CONSUME_START_TIME),
        *(CORRELATION_ID, REPLY_TO_CLIENT, TTL, MSG_TYPE, PUSH_REPLY_TIME, ARRIVE_TIME),
        *(POP_CK, FIRST_POP_TIME, INNER_NUM, INNER_BASE),
    }
)
"""Names that a program can not give to properties of its own."""
