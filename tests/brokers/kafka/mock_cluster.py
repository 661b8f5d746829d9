"""The cluster that librdkafka brings for tests, alone in a process: `python mock_cluster.py BROKERS`.

It speaks Kafka's protocol with headers, idempotence and consumers, and keeps records in memory. The Python client shows
little of it, so the C functions are called. Each line of standard input is a command, answered by one line.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import confluent_kafka

POINTER, TEXT, INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int


def library() -> ctypes.CDLL:
    place = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    lib = ctypes.CDLL(str(next(place.glob("librdkafka-*"))))
    lib.rd_kafka_conf_new.restype = POINTER
    lib.rd_kafka_conf_set.argtypes = [POINTER, TEXT, TEXT, TEXT, ctypes.c_size_t]
    lib.rd_kafka_new.restype = POINTER
    lib.rd_kafka_new.argtypes = [INT, POINTER, TEXT, ctypes.c_size_t]
    lib.rd_kafka_mock_cluster_new.restype = POINTER
    lib.rd_kafka_mock_cluster_new.argtypes = [POINTER, INT]
    lib.rd_kafka_mock_cluster_bootstraps.restype = TEXT
    lib.rd_kafka_mock_cluster_bootstraps.argtypes = [POINTER]
    lib.rd_kafka_mock_topic_create.argtypes = [POINTER, TEXT, INT, INT]
    lib.rd_kafka_mock_topic_set_error.argtypes = [POINTER, TEXT, INT]
    lib.rd_kafka_mock_push_request_errors_array.argtypes = [POINTER, ctypes.c_int16, ctypes.c_size_t, POINTER]
    lib.rd_kafka_mock_broker_set_host_port.argtypes = [POINTER, ctypes.c_int32, TEXT, INT]
    return lib


def main(brokers: int) -> None:
    lib, said = library(), ctypes.create_string_buffer(512)
    conf = lib.rd_kafka_conf_new()
    lib.rd_kafka_conf_set(conf, b"log_level", b"0", said, 512)
    cluster = lib.rd_kafka_mock_cluster_new(lib.rd_kafka_new(0, conf, said, 512), brokers)
    print(lib.rd_kafka_mock_cluster_bootstraps(cluster).decode(), flush=True)
    for line in sys.stdin:
        command, *words = line.split()
        if command == "create":
            lib.rd_kafka_mock_topic_create(cluster, words[0].encode(), int(words[1]), 1)
        elif command == "topic":  # what the cluster says of this topic from now on
            lib.rd_kafka_mock_topic_set_error(cluster, words[0].encode(), int(words[1]))
        elif command == "push":  # errors of the next requests of this kind
            codes = [int(word) for word in words[1:]]
            given = (INT * len(codes))(*codes)
            lib.rd_kafka_mock_push_request_errors_array(cluster, int(words[0]), len(codes), given)
        elif command == "advertise":  # where clients find the first broker
            lib.rd_kafka_mock_broker_set_host_port(cluster, 1, words[0].encode(), int(words[1]))
        print("ok", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
