"""A real Kafka broker for tests: a given one, one in a container, or plain jars on this machine's Java.

Order of choice (`session_broker`): `MEMSTREAM_TEST_KAFKA=host:port`; a Docker engine that answers (testcontainers);
`java` and `mvn` on the path; none. The configuration follows Apache Kafka's quick start (KRaft, one node).
"""

from __future__ import annotations

import asyncio
import base64
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from filelock import FileLock

from .polling import TimedOut, wait_for_blocking

KAFKA_VERSION = "4.3.0"
READY_TIMEOUT = 60.0  # seconds; 3 s on two idle cores
STOP_TIMEOUT = 30.0
NO_BROKER = (
    "no Kafka for tests: set MEMSTREAM_TEST_KAFKA=host:port, start a Docker engine, or install Java 17+ and Maven"
)

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>memstream</groupId><artifactId>test-broker</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""

_PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
auto.create.topics.enable=false
broker.session.timeout.ms=5000
broker.heartbeat.interval.ms=500
num.network.threads=2
num.io.threads=2
log.cleaner.dedupe.buffer.size=4194304
log.cleaner.backoff.ms=100
log.cleaner.min.cleanable.ratio=0.01
log.initial.task.delay.ms=500
"""


class BrokerFailed(RuntimeError):
    """The broker did not start. The message ends with the last lines of its log."""


class Broker(Protocol):
    """One broker on one folder or container. After `stop` or `kill`, `start` keeps address and data."""

    @property
    def bootstrap(self) -> str:
        """`host:port`, unchanged by restarts."""
        ...

    def start(self) -> None:
        """Start the broker and return when it answers a metadata call. Blocks: a coroutine uses a thread."""
        ...

    def stop(self) -> None:
        """End it with SIGTERM. Does nothing when it is not running."""
        ...

    def kill(self) -> None:
        """End it with SIGKILL. Does nothing when it is not running."""
        ...

    def close(self) -> None:
        """End it and delete its data."""
        ...


# --------------------------------------------------------------------------- small tools
def free_port() -> int:
    """Return a free port below the ephemeral range.

    Inside that range a client that keeps connecting while the broker is away ends up connected to itself, and the
    broker cannot bind again.
    """
    try:
        low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        low = 32768
    for _ in range(200):
        port = random.randrange(15000, max(low, 15100))
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port below the ephemeral range")


def answers_metadata(bootstrap: str, timeout: float = 5.0) -> bool:
    """Return whether a metadata call is answered. It runs in a thread, since the caller may be inside an event
    loop.
    """
    result: list[bool] = []

    async def call() -> bool:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=int(timeout * 1000))
        try:
            await admin.start()
            await admin.list_topics()
        except (KafkaError, OSError):
            return False
        finally:
            await admin.close()
        return True

    def run() -> None:
        result.append(asyncio.run(call()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout + 5)
    return bool(result and result[0])


def wait_until_it_answers(bootstrap: str) -> None:
    """Wait until a metadata call is answered. Raises `TimedOut`."""
    what = f"an answer of {bootstrap} to a metadata call"
    wait_for_blocking(lambda: answers_metadata(bootstrap), what, deadline=READY_TIMEOUT, pause=0.1)


# --------------------------------------------------------------------------- plain jars
def kafka_jars() -> Path:
    """Return the folder with Kafka's jars. They are fetched once per version and machine (44 MB), outside the
    checkout.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memstream-tests"
    home = root / f"kafka-{KAFKA_VERSION}"
    libs = home / "libs"
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / f"kafka-{KAFKA_VERSION}.lock", timeout=300):
        if not libs.is_dir():
            partial = home / "partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            (home / "pom.xml").write_text(_POM)
            command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
            done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode:
                raise BrokerFailed(
                    f"mvn could not fetch Kafka {KAFKA_VERSION}: {done.stdout[-1500:]}{done.stderr[-500:]}"
                )
            partial.rename(libs)  # so that a fetch that was cut off is never taken for a whole one
    return libs


JVM = ("java", "-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
STARTED = b"Kafka Server started"


@dataclass(frozen=True)
class Prepared:
    """What every broker begins with: the jars, a formatted folder, and the classes that a broker loads, as the JVM
    keeps them. Without the last two a start takes three processes and 5.5 s of a core instead of one and 2 s.
    """

    classpath: str
    formatted: Path
    classes: Path

    def command(self, config: Path, *options: str) -> list[str]:
        return [*JVM, *options, "-cp", self.classpath, "kafka.Kafka", str(config)]


def prepared() -> Prepared:
    """Return what every broker begins with. It is made once per machine, Kafka and Java."""
    libs = kafka_jars()
    java = Path(shutil.which("java") or "java").resolve()
    home = libs.parent / f"prepared-{zlib.crc32(f'{java} {java.stat().st_mtime_ns}'.encode()):08x}"
    made = Prepared(f"{libs}/*", home / "formatted", home / "classes.jsa")
    with FileLock(libs.parent / "prepared.lock", timeout=300):
        if not home.is_dir():
            partial = home.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            _prepare(partial, made)
            partial.rename(home)
    return made


def _prepare(folder: Path, made: Prepared) -> None:
    """Write the formatted folder, and the classes: the JVM writes them when a broker that has started ends."""
    config, data, log = write_properties(folder, port=free_port()), folder / "data", folder / "broker.log"
    cluster = base64.urlsafe_b64encode(b"memstream-tests!").decode().rstrip("=")
    tool = [*JVM, "-cp", made.classpath, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config)]
    done = subprocess.run(tool, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise BrokerFailed(f"format: {done.stdout[-500:]}{done.stderr[-1500:]}")
    shutil.copytree(data, folder / made.formatted.name)
    with log.open("ab") as out:
        command = made.command(config, f"-XX:ArchiveClassesAtExit={folder / made.classes.name}")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            wait_for_blocking(lambda: STARTED in log.read_bytes(), "a first broker", deadline=READY_TIMEOUT, pause=0.1)
            process.terminate()
            process.wait(READY_TIMEOUT)
        finally:
            process.kill()
            process.wait()
    shutil.rmtree(data)


def write_properties(folder: Path, *, port: int, more: str = "") -> Path:
    """Write a broker's configuration."""
    path = folder / "server.properties"
    path.write_text((_PROPERTIES + more).format(port=port, controller=free_port(), folder=folder))
    return path


class JarBroker:
    """KRaft broker and controller in one JVM. Its folder stays between starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.more_properties = ""
        """Lines of server.properties, which replace other lines. `{port}` and `{controller}` are the ports."""
        self.log = folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        if self.running:
            return
        begin = prepared()
        config = self.folder / "server.properties"
        if not config.exists():
            shutil.copytree(begin.formatted, self.folder / "data")
            write_properties(self.folder, port=self.port, more=self.more_properties)
        seen = self.log.stat().st_size if self.log.exists() else 0
        command = begin.command(config, f"-XX:SharedArchiveFile={begin.classes}", "-XX:+ExitOnOutOfMemoryError")
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        self._guard = _guard(self._process.pid)
        try:
            started = "the line 'Kafka Server started' in its log"
            wait_for_blocking(lambda: self._has_started(seen), started, deadline=READY_TIMEOUT, pause=0.1)
            wait_until_it_answers(self.bootstrap)
        except (BrokerFailed, TimedOut) as exc:
            self.kill()
            raise BrokerFailed(f"{exc}\n{self._tail()}") from exc

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder / "data", ignore_errors=True)

    def _has_started(self, seen: int) -> bool:
        if not self.running:
            raise BrokerFailed("the broker ended while it was starting")
        with self.log.open("rb") as f:
            f.seek(seen)
            return STARTED in f.read()

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""

    def _end(self, how: signal.Signals) -> None:
        process, guard = self._process, self._guard
        self._process = self._guard = None
        if process is not None:
            if process.poll() is None:
                process.send_signal(how)
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(STOP_TIMEOUT)
        if guard is not None:
            guard.kill()
            guard.wait()
            if guard.stdin is not None:
                guard.stdin.close()


def _guard(pid: int) -> subprocess.Popen[bytes]:
    """Kill the broker when this process ends without closing it (a test that timed out ends by os._exit)."""
    script = 'read _; kill -9 "$1" 2>/dev/null'
    return subprocess.Popen(["sh", "-c", script, "guard", str(pid)], stdin=subprocess.PIPE, start_new_session=True)


# --------------------------------------------------------------------------- container
def docker_answers() -> bool:
    """Return whether a Docker engine answers here."""
    import docker  # type: ignore[import-untyped,unused-ignore]
    from docker.errors import DockerException  # type: ignore[import-untyped,unused-ignore]

    try:
        client = docker.from_env(timeout=5)
        try:
            return bool(client.ping())
        finally:
            client.close()
    except (DockerException, OSError):
        return False


class ContainerBroker:
    """A broker in a container. The host's port is fixed, so that a restart keeps the address."""

    def __init__(self) -> None:
        self.port = free_port()
        self._container: Any = None

    @property
    def bootstrap(self) -> str:
        return f"{self._container.get_container_host_ip()}:{self.port}"

    def start(self) -> None:
        if self._container is None:
            self._container = self._new()
            self._container.start()
        else:
            self._container.get_wrapped_container().start()
        wait_until_it_answers(self.bootstrap)

    def _new(self) -> Any:
        from testcontainers.community.kafka import KafkaContainer

        container = KafkaContainer(f"confluentinc/cp-kafka:{CONTAINER_TAG}").with_kraft()
        container.with_bind_ports(container.port, self.port)
        container.with_env("KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS", "1000")
        container.with_env("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "0")
        container.with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false")
        container.with_env("KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS", "1")
        return container

    def stop(self) -> None:
        if self._container is not None:
            self._container.get_wrapped_container().stop(timeout=int(STOP_TIMEOUT))

    def kill(self) -> None:
        from docker.errors import APIError  # type: ignore[import-untyped,unused-ignore]

        if self._container is not None:
            try:
                self._container.get_wrapped_container().kill()
            except APIError as exc:  # 409: it is not running
                if exc.status_code != 409:
                    raise

    def close(self) -> None:
        if self._container is not None:
            self._container.stop()


CONTAINER_TAG = "8.1.0"  # Kafka 4.1 in Confluent's counting


# --------------------------------------------------------------------------- choice
class GivenBroker:
    """A broker that somebody else runs. Tests use it and never stop it."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    @property
    def bootstrap(self) -> str:
        return self._bootstrap

    def start(self) -> None:
        wait_until_it_answers(self.bootstrap)

    def stop(self) -> None:
        raise RuntimeError("MEMSTREAM_TEST_KAFKA is not ours to stop: use own_broker()")

    kill = stop

    def close(self) -> None:
        return


def session_broker(folder: Path) -> Broker | None:
    """Return the broker that all tests of a run share, not started yet; None if there is no way to get one."""
    given = os.environ.get("MEMSTREAM_TEST_KAFKA")
    return GivenBroker(given) if given else own_broker(folder)


def own_broker(folder: Path) -> Broker | None:
    """Return a broker that the caller may stop and kill, not started yet; None if there is no way to get one."""
    if docker_answers():
        return ContainerBroker()
    return JarBroker(folder) if has_jars() else None


def has_jars() -> bool:
    """Return whether brokers can run on this machine's Java."""
    return bool(shutil.which("java") and shutil.which("mvn"))
