"""Models: signatures, runs, variables, placement."""
from __future__ import annotations

import contextlib
import json
from collections.abc import Callable as _Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _arrays, _futures, _html, _oncilla, _types
from ._futures import Run
from ._oncilla import Callable, Cancellation
from ._plan import Plan, read_plan
from ._result import Result
from ._spec import Info, TensorSpec, spec_of

if TYPE_CHECKING:
    from ._session import Session

_TRACE = {"none": 0, "software": 1, "hardware": 2, "full": 3}
Rule = _Callable[[str, str, str], "str | None"]


class _Declared:
    """What a signature declares. It has no reference to its model, because a cycle would keep both from being freed at once."""

    def __init__(self, key: str, inputs: list[Info], outputs: list[Info]) -> None:
        self.key = key
        self.inputs = {info[0]: spec_of(info) for info in inputs}
        self.outputs = {info[0]: spec_of(info) for info in outputs}
        self.convert = _arrays.converter({name: (code, dims, kind) for name, code, dims, kind in inputs})


class Signature:
    """One signature of a model: its inputs and outputs; a call runs it."""

    def __init__(self, model: Model, declared: _Declared) -> None:
        self._model = model
        self.key = declared.key
        self.inputs: dict[str, TensorSpec] = dict(declared.inputs)
        self.outputs: dict[str, TensorSpec] = dict(declared.outputs)

    def __call__(self, *values: Any, **named: Any) -> Result:
        """Runs the signature on inputs by name, or on its one input."""
        return self._model.run(_inputs_of(self, values, named), signature=self.key or None)

    def __repr__(self) -> str:
        return (f"<oncilla.Signature {self.key!r}: ({', '.join(map(str, self.inputs.values()))}) -> "
                f"({', '.join(map(str, self.outputs.values()))})>")


def _inputs_of(signature: Signature | _Declared, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    if not values:
        return named
    if len(values) > 1 or named:
        raise TypeError("inputs are given by name, or one input alone without")
    if isinstance(values[0], Mapping):
        return dict(values[0])
    if len(signature.inputs) != 1:
        raise TypeError(f"the signature has {len(signature.inputs)} inputs ({', '.join(signature.inputs)}): give them by "
                        "name")
    return {next(iter(signature.inputs)): values[0]}


def _names(names: str | Iterable[str] | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)


class Model(_oncilla.ModelBase):
    """A loaded model; made by oncilla.load and Session.load. Threads may share it, and runs may overlap.

    A call runs the default signature: `model(image=x)`, `model({"image:0": x})`, or `model(x)` where it has one input.
    Arrays of the declared type go in without a copy where they are dense and row-major; an array of another type is
    refused, while lists and numbers take the declared type.
    """

    session: Session
    _owns_session = False
    _closed_bytes: int | None = None
    _declared: dict[str, _Declared]

    def _prepare_for(self, session: Session, strings: str) -> None:
        if strings not in ("str", "bytes"):
            raise ValueError(f"strings is \"str\" or \"bytes\", not {strings!r}")
        self.session = session
        self._session = session
        self._bytes = strings == "bytes"

    def _loaded(self) -> None:
        self._declared = {}
        for index, key in enumerate(self._signatures()):
            inputs, outputs = self._infos(index, False), self._infos(index, True)
            self._plain = self._plain and all(kind == 0 for _, _, _, kind in inputs)
            self._declared[key] = _Declared(key, inputs, outputs)
        default = self._default()
        self._convert = default.convert if default else _arrays.converter({})
        self._only_input = next(iter(default.inputs)) if default and len(default.inputs) == 1 else None

    def _default(self) -> _Declared | None:
        known = self._declared
        return known.get("serving_default") or (next(iter(known.values())) if len(known) == 1 else None)

    def _signature(self, key: str | None) -> _Declared | None:
        return self._default() if key is None else self._declared.get(key)

    @property
    def signatures(self) -> dict[str, Signature]:
        """The signatures by key; a format without signatures has one, with an empty key."""
        return {key: Signature(self, declared) for key, declared in self._declared.items()}

    @property
    def inputs(self) -> dict[str, TensorSpec]:
        """The inputs of the default signature."""
        default = self._default()
        return dict(default.inputs) if default else {}

    @property
    def outputs(self) -> dict[str, TensorSpec]:
        """The outputs of the default signature."""
        default = self._default()
        return dict(default.outputs) if default else {}

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        trace = options.get("trace")
        if trace is not None:
            level = {True: "full", False: "none"}.get(trace, trace)
            if level not in _TRACE:
                raise ValueError(f"trace is one of {', '.join(_TRACE)}, not {trace!r}")
            options["trace"] = _TRACE[level]
        for key in ("device", "signature"):
            _types.check_text(key, options.get(key))
        cancel = options.get("cancel")
        if cancel is not None and not isinstance(cancel, Cancellation):
            raise TypeError(f"cancel must be an oncilla.Cancellation, not {type(cancel).__name__}")
        for key in ("outputs", "targets", "keep"):
            if isinstance(options.get(key), str):
                options[key] = [options[key]]
        if options.get("keep") is False:
            options["keep"] = None
        return options

    def _converter(self, signature: str | None) -> Any:
        of = self._signature(signature)
        return self._convert if of is None else of.convert

    def run(self, inputs: Mapping[str, Any] | None = None, *, signature: str | None = None,
            outputs: str | Iterable[str] | None = None, targets: str | Iterable[str] | None = None,
            device: str | None = None, timeout: float | None = None, cancel: Cancellation | None = None,
            keep: bool | Iterable[str] | None = None, into: Mapping[str, Any] | None = None,
            trace: str | bool | None = None) -> Result:
        """Runs the model and waits for the results.

        `inputs` are given by name; any tensor of a TensorFlow graph can be fed and fetched ("conv1/Relu:0"). `outputs` are
        the names to compute (None: all of the signature), `targets` nodes of a TensorFlow graph to run for their side
        effects. `device` is the device of this run. `timeout` is in seconds; it and `cancel` end the run within milliseconds, as
        does Ctrl-C in the main thread. `keep` names outputs that stay on the device as oncilla.Tensor, to be fed to later
        runs (True: all). `into` gives writable arrays that outputs are written to. `trace` records "software", "hardware" or
        "full" for Result.trace.
        """
        # Most calls have no options, or only say what they want, and should not pay for the others.
        if (signature is None and targets is None and device is None and timeout is None and cancel is None
                and keep is None and into is None and trace is None):
            wanted = {} if outputs is None else {"outputs": [outputs] if isinstance(outputs, str) else outputs}
            plain: Result = self._run(dict(inputs or {}), wanted, self._convert)
            return plain
        options = self._options({"signature": signature, "outputs": outputs, "targets": targets, "device": device,
                                 "timeout": timeout, "cancel": cancel, "keep": keep, "into": into, "trace": trace})
        if into is not None:
            options["into"] = dict(into)
        result: Result = self._run(dict(inputs or {}), options, self._converter(signature))
        if into is not None:
            result.update({name: into[name] for name in into if name in result})
        return result

    def run_async(self, inputs: Mapping[str, Any] | Any = None, *, signature: str | None = None,
                  outputs: str | Iterable[str] | None = None, targets: str | Iterable[str] | None = None,
                  device: str | None = None, timeout: float | None = None, cancel: Cancellation | None = None,
                  keep: bool | Iterable[str] | None = None, trace: str | bool | None = None) -> Run:
        """Like run(), on a thread of the session: returns a future at once, which can be awaited. Input arrays must not change
        until the run is over. The time limit counts from this call."""
        of = self._signature(signature)
        if inputs is not None and not isinstance(inputs, Mapping) and of is not None:
            inputs = _inputs_of(of, (inputs,), {})
        options = self._options({"signature": signature, "outputs": outputs, "targets": targets, "device": device,
                                 "timeout": timeout, "cancel": cancel, "keep": keep, "trace": trace})
        given, convert = dict(inputs or {}), self._converter(signature)
        return _futures.start(lambda number: self._start(given, options, convert, number))

    def prepare(self, inputs: Mapping[str, Any] | None = None, *, signature: str | None = None,
                outputs: str | Iterable[str] | None = None, device: str | None = None) -> None:
        """Does the work of a first run except computing: compiles, plans memory, makes kernels for inputs of these shapes and
        uploads the weights. Without inputs, it does as much as the declared shapes allow."""
        self._prepare(dict(inputs or {}), self._options({"signature": signature, "outputs": outputs, "device": device}),
                      self._converter(signature))

    def callable(self, inputs: str | Iterable[str] | None = None, outputs: str | Iterable[str] | None = None, *,
                 signature: str | None = None, targets: str | Iterable[str] | None = None,
                 keep: bool | Iterable[str] | None = None) -> Callable:
        """A run whose names are looked up once, for calls that are made very often: `step = model.callable(["x"], ["y"])`,
        then `y = step(x)`. By default it takes and gives what the signature declares, in its order. Results are one value, or
        a tuple of several."""
        of = self._signature(signature)
        if inputs is None:
            inputs = list(of.inputs) if of else []
        keep_all = keep is True
        kept = [] if isinstance(keep, bool) else _names(keep)
        return _oncilla._make_callable(self, signature, tuple(_names(inputs)), _names(outputs), _names(targets), kept,
                                       keep_all, self._converter(signature))

    def read_variable(self, name: str) -> Any:
        """The value of a variable, trained weights included; a copy."""
        return self._read_variable(name)

    def assign_variable(self, name: str, value: Any) -> None:
        """Assigns a variable for runs that begin later; its type and shape must be the variable's."""
        spec = self.variables.get(name)
        code = None if spec is None else _types.CODES.get(spec.dtype)
        tensor = _arrays.to_tensor(name, value, code)
        # The library keeps a reference to the memory, and an array of the program may change.
        self._assign_variable(name, _oncilla.copy(tensor))

    @property
    def variables(self) -> dict[str, TensorSpec]:
        """The variables of a TensorFlow model by name, trained weights included."""
        return {info[0]: spec_of(info) for info in self._variables()}

    def place(self, nodes: str | None, device: str, *, op: str | None = None) -> None:
        """From the next run on, nodes whose name matches `nodes` ("*" any text, "?" one character; None: all) and whose type
        is `op` run on `device`, where that has a kernel for them. The last matching request wins; "" undoes earlier ones."""
        self._place(nodes, op, device)

    def place_by(self, rule: Rule) -> None:
        """Asks `rule(node, op, stored)` for the device of each node of a graph that is compiled from now on; None is no
        preference. It is called from any thread."""
        if not callable(rule):
            raise TypeError("the rule must be a function of node, op and stored device")
        self._place_by(rule)

    def plan(self, signature: str | None = None, device: str | None = None) -> Plan:
        """Where each node runs and why, and the peak memory of the model's plans; `print` it, or show it in a notebook.
        Memory is known for shapes that were run or prepared."""
        if signature is not None and not isinstance(signature, str):
            raise TypeError(f"plan() takes the name of a signature, not {type(signature).__name__}; prepare(inputs) plans for "
                            "the shapes of inputs, and plan() then shows that plan too")
        return read_plan(self._placement(signature, device), json.loads(self._memory_report()))

    def close(self) -> int:
        """Waits for the model's runs and frees its memory, and its session where load() made one for it. Returns the number
        of bytes freed. The model then refuses to run."""
        if self._closed_bytes is not None:
            return 0
        self._closed_bytes = self._unload()
        if self._owns_session:
            self._closed_bytes += self.session.close()
        return self._closed_bytes

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._closed_bytes is not None

    @property
    def closed_bytes(self) -> int | None:
        """How many bytes close() freed; None as long as the model is open."""
        return self._closed_bytes

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<oncilla.Model, closed>"
        default = self._default()
        if default is None:
            return f"<oncilla.Model with signatures {', '.join(self._declared) or 'none'}>"
        return (f"<oncilla.Model ({', '.join(map(str, default.inputs.values()))}) -> "
                f"({', '.join(map(str, default.outputs.values()))})>")

    def _repr_html_(self) -> str:
        plan = None
        with contextlib.suppress(Exception):  # a model that cannot be compiled is still shown
            plan = self.plan()
        return _html.model(self._declared, plan)

