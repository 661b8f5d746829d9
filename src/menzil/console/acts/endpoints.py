"""Acts on an endpoint: enable, disable, reset its circuit, test, make, change."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import Any, ClassVar

from menzil.console.act import Act, Change, Done, Field, Given, Plan, Undo
from menzil.console.configs import changes, hidden, patch
from menzil.console.documents import dumps
from menzil.console.texts import slug
from menzil.console.typed import line, mapping
from menzil.console.words import many
from menzil.model.errors import NameTakenError, UnknownNameError, UsageError
from menzil.model.secrets import encrypt_config, secret_keys
from menzil.ops import endpoints, looking, sending
from menzil.ops.op import Op
from menzil.ops.records import Record
from menzil.watch.finding import Run

ENDPOINT = Field("endpoint", "Endpoint", "hidden", longest=200)
CONFIG = Field(
    "config", "Config", "area", default='{"url": "https://example.com/hook"}', longest=100_000,
    help='JSON; which keys it has depends on the protocol. A secret that stands as {"$secret": …} stays as it is.',
)  # fmt: skip
POLICY = Field(
    "retry_policy", "Retry policy", "area", default="null", longest=10_000, help="JSON; null for that of the settings."
)


class OnEndpoint(Act):
    """What acts on one endpoint have in common."""

    fields: ClassVar[tuple[Field, ...]] = (ENDPOINT,)
    nav = "/endpoints"

    def back(self, given: Given) -> str:
        name = given.get("endpoint", "")
        return f"/endpoints/{slug(name)}" if name else self.nav

    def found(self, run: Run, given: Given) -> Record:
        """The endpoint, or a refusal."""
        found = run(looking.endpoint(given["endpoint"]))
        if found is None:
            raise UnknownNameError(f"There is no endpoint named {given['endpoint']!r}.")
        return found

    def fares(self, run: Run, given: Given) -> Record:
        """How it fares. The view of endpoints has the circuit of the last dequeue, which may be long ago."""
        self.found(run, given)
        (row,) = run(endpoints.get_endpoint_health(given["endpoint"]))
        return row

    def command(self, word: str, given: Given, options: str = "") -> str:
        """The command line of a plain act."""
        return line(f"endpoint {word}", given["endpoint"], options=options)


class Enable(OnEndpoint):
    """Let it take messages again."""

    name, title, verb = "endpoint-enable", "Enable an endpoint", "Enable it"

    def plan(self, run: Run, given: Given) -> Plan:
        found = self.found(run, given)
        warnings = ["It is enabled already."] if found["enabled"] else []
        sentence = f"Endpoint {given['endpoint']} takes messages again."
        return Plan(sentence, self.command("enable", given), warnings=warnings)

    def is_so(self, run: Run, given: Given) -> bool:
        return bool(self.found(run, given)["enabled"])

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [endpoints.enable_endpoint(given["endpoint"])]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"Endpoint {given['endpoint']} is enabled.", Undo("endpoint-disable", given, "Disable"))


class Disable(OnEndpoint):
    """Refuse new messages."""

    name, title, verb, danger = "endpoint-disable", "Disable an endpoint", "Disable it", True

    def plan(self, run: Run, given: Given) -> Plan:
        found = self.found(run, given)
        return Plan(
            f"Endpoint {given['endpoint']} refuses new messages, and events are no longer copied to it.",
            self.command("disable", given),
            more=["What waits stays and is not delivered until the endpoint is enabled again."],
            leaves=["What is in flight may finish."],
            warnings=[] if found["enabled"] else ["It is disabled already."],
        )

    def is_so(self, run: Run, given: Given) -> bool:
        return not self.found(run, given)["enabled"]

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [endpoints.disable_endpoint(given["endpoint"])]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"Endpoint {given['endpoint']} is disabled.", Undo("endpoint-enable", given, "Enable"))


class Reset(OnEndpoint):
    """Close its circuit."""

    name, title, verb = "endpoint-reset", "Reset a circuit", "Reset it"

    def plan(self, run: Run, given: Given) -> Plan:
        found = self.fares(run, given)
        idle = found["circuit_state"] == "closed" and not found["waits_until"]
        return Plan(
            f"The circuit of {given['endpoint']} is closed, and a rest that it asked for ends.",
            self.command("reset", given),
            more=["Deliveries go on at once, as many as its limits allow."],
            warnings=["Its circuit is closed already, and it did not ask for a rest."] if idle else [],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [endpoints.reset_circuit_breaker(given["endpoint"])]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"The circuit of {given['endpoint']} is closed.")


class Test(OnEndpoint):
    """Send one message that says what it is."""

    name, title, verb = "endpoint-test", "Test an endpoint", "Send the test"

    def plan(self, run: Run, given: Given) -> Plan:
        found = self.fares(run, given)
        holds = ["It is paused and will hold the message."] if found["paused"] else []
        if found["circuit_state"] != "closed":
            holds.append("Its circuit is not closed: the message waits like all others until a probe succeeds.")
        return Plan(
            f"One message of type menzil.test goes to {given['endpoint']}.",
            self.command("test", given),
            to=[given["endpoint"]],
            more=["It stands in line like any other, and a worker delivers it: the console itself connects nowhere."],
            warnings=holds,
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        body = {"type": "menzil.test", "endpoint": given["endpoint"]}
        return [sending.send(given["endpoint"], body, metadata={"test": True})]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        number = answers[0]
        undo = Undo("message-cancel", {"id": str(number)}, "Cancel it")
        see = [("See what becomes of it", f"/messages/{number}")]
        return Done(
            f"Message {number} is on its way to {given['endpoint']}.", undo, see, noted=("endpoint", given["endpoint"])
        )


class Create(OnEndpoint):
    """Make one."""

    name, title, verb = "endpoint-create", "Make an endpoint", "Make it"
    fields = (
        Field("endpoint", "Name", longest=200),
        Field(
            "protocol",
            "Protocol",
            default="http",
            longest=60,
            help="http, or that of a broker: the function menzil.known_protocols() lists them.",
        ),
        CONFIG,
    )

    def complete(self, query: Given) -> bool:
        del query  # a config is written by a person, never by a link
        return False

    def plan(self, run: Run, given: Given) -> Plan:
        if run(looking.channel(given["endpoint"])) is not None:
            raise NameTakenError(f"There is a channel named {given['endpoint']!r} already.")
        config = mapping("The config", given["config"])
        run(endpoints.validate_endpoint_config(given["protocol"], config))
        shown = dumps(hidden(config))
        told = f" --config {quote(shown)}"
        if given["protocol"] != "http":
            told += f" --protocol {quote(given['protocol'])}"
        return Plan(f"Endpoint {given['endpoint']} is made and takes messages.", self.command("create", given, told))

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        config = hidden(mapping("The config", given["config"]))
        return [endpoints.create_endpoint(given["endpoint"], given["protocol"], config)]

    def execute(self, run: Run, given: Given) -> Done:
        name, config = given["endpoint"], mapping("The config", given["config"])
        run(endpoints.create_endpoint(name, given["protocol"], encrypt_config(config, name, secret_keys(None))))
        return self.done([], given)

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        undo = Undo("endpoint-drop", {"endpoint": given["endpoint"]}, "Drop it")
        return Done(f"Endpoint {given['endpoint']} is there.", undo)


class Drop(OnEndpoint):
    """Remove one that has no messages."""

    name, title, verb, danger = "endpoint-drop", "Drop an endpoint", "Drop it", True

    def plan(self, run: Run, given: Given) -> Plan:
        self.found(run, given)
        held = run(looking.load(given["endpoint"]))
        count = int(held["pending"]) + int(held["processing"])
        if count:
            hint = "purge it, or release it: then it is dropped when it has drained"
            raise UsageError(f"Endpoint {given['endpoint']} still has {many(count, 'message')}.", hint=hint)
        return Plan(
            f"Endpoint {given['endpoint']} is removed, and its secrets with it.",
            self.command("drop", given),
            leaves=["Its history stays, and its dead letters."],
            warnings=["There is no undo: its secrets are gone for good."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [endpoints.drop_endpoint(given["endpoint"])]

    def back(self, given: Given) -> str:
        del given
        return self.nav

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"Endpoint {given['endpoint']} is gone.")


class Alter(OnEndpoint):
    """Change its config and its retry policy."""

    name, title, verb = "endpoint-alter", "Change an endpoint", "Save the config"
    lists_changes = True
    fields = (ENDPOINT, CONFIG, POLICY)

    def prefill(self, run: Run, given: Given) -> Given:
        found = self.found(run, given)
        return {"config": dumps(found["config"], 2), "retry_policy": dumps(found["retry_policy"], 2)}

    def asked(self, given: Given) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """What the person wrote."""
        policy = given["retry_policy"].strip()
        written = None if policy in ("", "null") else mapping("The retry policy", policy)
        return mapping("The config", given["config"]), written

    def plan(self, run: Run, given: Given) -> Plan:
        found = self.found(run, given)
        config, policy = self.asked(given)
        run(endpoints.validate_endpoint_config(found["protocol"], config))
        told = [Change(*one) for one in changes(found["config"], hidden(config))]
        words = ["--config", dumps(patch(found["config"], hidden(config)))]
        if policy != found["retry_policy"]:
            told.append(Change("retry policy", dumps(found["retry_policy"]), dumps(policy)))
            words += ["--retry-policy", dumps(policy)]
        return Plan(
            f"Tries to {given['endpoint']} use the new config from now on." if told else "Nothing would change.",
            self.command("alter", given, f" {' '.join(map(quote, words))}"),
            changes=told,
            leaves=["What is in flight is delivered as it was.", "Secrets whose marks stand here stay as they are."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        config, policy = self.asked(given)
        return self._ops(run, given, hidden(config), policy)

    def _ops(self, run: Run, given: Given, config: Any, policy: dict[str, Any] | None) -> list[Op[Any]]:
        found, name = self.found(run, given), given["endpoint"]
        asked: list[Op[Any]] = []
        if config != found["config"]:
            asked.append(endpoints.alter_endpoint(name, config))
        if policy != found["retry_policy"]:
            asked.append(endpoints.set_retry_policy(name, policy))
        return asked

    def execute(self, run: Run, given: Given) -> Done:
        config, policy = self.asked(given)
        old, name = self.prefill(run, given), given["endpoint"]
        for op in self._ops(run, given, encrypt_config(config, name, secret_keys(None)), policy):
            run(op)
        undo = Undo(self.name, {"endpoint": name, **old}, "Back to the old config")
        return Done(f"Endpoint {name} is changed. Secrets that were replaced do not come back.", undo)


ACTS = (Enable(), Disable(), Reset(), Test(), Create(), Alter(), Drop())
