"""Every call to a Kafka client has a bound, or waits for nobody: decided by reading the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

CHECKOUT = Path(__file__).parents[2]
ASKING = [
    CHECKOUT / "airflow_provider_kpipe" / room
    for room in ("kafka", "transactions", "planning", "checkpointing", "redriving", "running")
]
ROOMS = [CHECKOUT / "spark_jobs" / "kpipe_engine", *ASKING]

CLIENTS = {"Producer", "Consumer", "AdminClient"}
# Clients go by these names, so that a call to one is known when it is read.
NAMES = {"producer", "consumer", "reader", "admin"}
# Waits for no broker: it is done in this process.
LOCAL = {
    *("produce", "begin_transaction", "consumer_group_metadata"),
    *("assign", "assignment", "pause", "resume", "position"),
}
# Comes back in time: the position of its timeout, which may be named too.
TIMED = {
    "poll": 0,
    "flush": 0,
    "init_transactions": 0,
    "abort_transaction": 0,
    "consume": 1,
    "committed": 1,
    "list_topics": 1,
    "get_watermark_offsets": 1,
}
TIMEOUTS = {"timeout", "request_timeout"}
# What is handed to one of these may take as long as it likes: it is left to itself.
BOUNDING = {"within", "BoundedCalls", "close_all", "let_go"}


def unbounded_calls(source: str) -> list[str]:
    """Calls to a client that could be waited for without an end, and clients under other names."""
    tree = ast.parse(source)
    excused = set(_handed_over(tree))
    found = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in _methods_of_clients(tree)
        if id(node) not in excused and node.attr not in LOCAL and not _is_timed(tree, node)
    ]
    found += [f"line {each.lineno}: {ast.unparse(each)}" for each in _called_past_their_bound(tree, excused)]
    return found + [f"line {node.lineno}: a client by another name: {ast.unparse(node)}" for node in _strangers(tree)]


def _methods_of_clients(tree: ast.AST) -> Iterator[ast.Attribute]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and _name(node.value) in NAMES:
            yield node


def _name(node: ast.expr) -> str:
    """Of a client, also where it is what a function gives, or one of several: `self._reader(slot)`, `consumers[0]`."""
    if isinstance(node, (ast.Call, ast.Subscript)):
        return _name(node.func if isinstance(node, ast.Call) else node.value).removesuffix("s")
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.removeprefix("_")


def _is_timed(tree: ast.AST, method: ast.Attribute) -> bool:
    """Called with a timeout, or made into a `partial` that has one."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and method in (call.func, *call.args):
            given = call.args if method is call.func else call.args[call.args.index(method) + 1 :]
            if any(keyword.arg in TIMEOUTS for keyword in call.keywords):
                return True
            if method.attr == "purge":
                return any(keyword.arg == "blocking" for keyword in call.keywords)
            return method.attr in TIMED and len(given) > TIMED[method.attr]
    return False


def _handed_over(tree: ast.AST) -> Iterator[int]:
    """What lies inside the arguments of a call that bounds, and inside functions that are named there."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    bounding = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node.func) in BOUNDING]
    assigned = {
        node.targets[0].id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for call in bounding:
        seen = [each for argument in call.args for each in ast.walk(argument)]
        seen += [
            each
            for node in seen
            if isinstance(node, ast.Name) and node.id in assigned
            for each in ast.walk(assigned[node.id])
        ]
        yield from (id(each) for each in seen)
        for node in seen:
            if (function := functions.get(_own_name(node))) is not None:
                yield from (id(each) for each in ast.walk(function))


def _own_name(node: ast.AST) -> str:
    """Of a function of the same module, or of a method of the same object."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _called_past_their_bound(tree: ast.AST, excused: set[int]) -> Iterator[ast.Call]:
    """Functions that are excused, as they are handed over, and that somebody calls all the same."""
    bounded = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and id(node) in excused}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _own_name(node.func) in bounded and id(node) not in excused:
            yield node


def _called(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _strangers(tree: ast.AST) -> Iterator[ast.Assign]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        if _called(node.value.func) in CLIENTS and _name(node.targets[0]) not in NAMES:
            yield node


def modules() -> list[Path]:
    return sorted(file for room in ROOMS for file in room.rglob("*.py"))


@pytest.mark.parametrize("file", modules(), ids=lambda file: f"{file.parent.name}/{file.name}")
def test_no_call_to_a_client_is_waited_for_without_an_end(file: Path) -> None:
    assert unbounded_calls(file.read_text()) == []


def test_clients_are_opened_only_where_their_calls_are_looked_at() -> None:
    sources = [*(CHECKOUT / "airflow_provider_kpipe").rglob("*.py"), *(CHECKOUT / "spark_jobs").rglob("*.py")]
    others = {file for file in sources if "sandbox" not in file.parts} - set(modules())
    assert len(others) > 50
    assert [file for file in others if CLIENTS & {_called(each) for each in _expressions(file)}] == []


def _expressions(file: Path) -> Iterator[ast.expr]:
    return (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.expr))


def unbounded_futures(source: str) -> list[str]:
    """Futures that somebody waits for: those of an admin client that was collected never end."""
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and _called(node.func) == "result" and not node.args
    ]


@pytest.mark.parametrize(
    "file", sorted(file for room in ASKING for file in room.rglob("*.py")), ids=lambda file: file.name
)
def test_no_future_is_waited_for_without_an_end(file: Path) -> None:
    assert unbounded_futures(file.read_text()) == []


def test_a_future_without_a_bound_is_found() -> None:
    assert unbounded_futures("admin.describe_topics(topics, request_timeout=5)['orders'].result()")
    assert unbounded_futures("future.result(5)") == []


@pytest.mark.parametrize(
    "call",
    [
        "producer.close()",
        "self.producer.flush()",
        "self._session.producer.init_transactions()",
        "self._consumer.commit(offsets=positions, asynchronous=False)",
        "consumer.committed(asked)",
        "wait(partial(self.producer.flush))",
        "producer.purge()",
        "close = reader.close",
        "mine = Producer({})",
        "producer.something_new()",
        "self._reader(slot).committed(asked)",
        "self._consumers[group].commit(offsets=positions, asynchronous=False)",
        "def drop():\n    producer.close()\ncalls = BoundedCalls(drop)\ndrop()",
        "def close():\n    reader.close()\ncalls = BoundedCalls(consumer.close)",
    ],
)
def test_one_without_a_bound_is_found(call: str) -> None:
    assert unbounded_calls(call)


@pytest.mark.parametrize(
    "call",
    [
        "producer.produce(topic, value)",
        "consumer.committed(asked, timeout=5)",
        "serve(partial(self.producer.flush, 0.2))",
        "calls.within(30, 'x', partial(producer.commit_transaction))",
        "let_go(*readers)",
        "close_all(*(each.close for each in clients))",
        "def drop():\n    producer.close()\ncalls = BoundedCalls(drop)",
    ],
)
def test_one_with_a_bound_is_let_through(call: str) -> None:
    assert unbounded_calls(call) == []


def test_the_names_are_those_of_the_clients() -> None:
    known = {name for kind in (confluent_kafka.Producer, confluent_kafka.Consumer) for name in dir(kind)}
    assert known >= LOCAL | TIMED.keys()
