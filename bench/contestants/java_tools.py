"""Kafka's own perf tools: the limit of the broker and of the Java client, in one direction."""

from __future__ import annotations

from airflow_provider_kpipe.sandbox import FAST_JVM, run_tool
from bench.data import count_records
from bench.work import BenchError, Job

TOOL_SECONDS = 600.0

JAVA_PRODUCER, JAVA_CONSUMER = "Java producer alone", "Java consumer alone"

# As in Spark's sink.
PRODUCER = ("acks=all", f"batch.size={256 * 1024}", "linger.ms=20")
# As in Spark's source.
CONSUMER = (
    "max.poll.records=5000",
    f"max.partition.fetch.bytes={8 * 1024 * 1024}",
    "auto.offset.reset=earliest",
)


class JavaProducer:
    """`kafka-producer-perf-test`: random bytes of the same size, into the output topic."""

    name = JAVA_PRODUCER

    def start(self) -> None:
        """Do nothing: each run is a process of its own, and the tool's clock starts after its JVM."""

    def run(self, job: Job) -> float:
        records = job.work.records
        output = run_tool(
            "org.apache.kafka.tools.ProducerPerformance",
            [
                *("--topic", job.output),
                *("--num-records", str(records.count)),
                *("--record-size", str(len(records.message(0).value))),
                *("--throughput", "-1"),
                *("--bootstrap-server", job.bootstrap_servers),
                *("--command-property", *PRODUCER),
            ],
            timeout=TOOL_SECONDS,
            jvm=FAST_JVM,
        )
        # "2000000 records sent, 812345.6 records/sec (143.33 MB/sec), ..."
        sent, _, rest = output.splitlines()[-1].partition(" records sent, ")
        if sent != str(records.count):
            raise BenchError(f"kafka-producer-perf-test was to send {records.count} records. It said:\n{output}")
        return records.count / float(rest.partition(" ")[0])

    def check(self, job: Job) -> None:
        found = count_records(job)
        if found != job.work.records.count:
            raise BenchError(f"{job.output} has {found} records instead of {job.work.records.count}")

    def close(self) -> None:
        """Nothing stays up."""


class JavaConsumer:
    """`kafka-consumer-perf-test`: reads the source topic, and ignores the contents."""

    name = JAVA_CONSUMER

    def start(self) -> None:
        """Do nothing: each run is a process of its own, and the tool's clock starts when it has its partitions."""

    def run(self, job: Job) -> float:
        records = job.work.records
        output = run_tool(
            "org.apache.kafka.tools.ConsumerPerformance",
            [
                *("--topic", records.topic),
                *("--num-records", str(records.count)),
                *("--group", job.output),
                *("--bootstrap-server", job.bootstrap_servers),
                *(word for setting in CONSUMER for word in ("--command-property", setting)),
            ],
            timeout=TOOL_SECONDS,
            jvm=FAST_JVM,
        )
        names, values = ([part.strip() for part in line.split(", ")] for line in output.splitlines()[-2:])
        said = dict(zip(names, values, strict=True))
        if int(said["data.consumed.in.nMsg"]) < records.count:
            raise BenchError(f"kafka-consumer-perf-test was to read {records.count} records. It said:\n{output}")
        return int(said["fetch.time.ms"]) / 1000

    def check(self, job: Job) -> None:
        """Do nothing: it writes nothing, and `run` has counted the records that it read."""

    def close(self) -> None:
        """Nothing stays up."""
