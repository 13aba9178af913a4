"""A Program on a GPU: kernels made once, then calls whose arrays go to the device and whose results stay there.

In: a Program, the device, and calls. Out: a `Specialisation` that the Memo keeps beside those of the CPU. Example:

    made = gpu_specialisation(program, dims, least, Device("gpu", 0))
    made.run(call)             # the function's output, with arrays of CuPy's

Arrays that lie on the device are read where they are, and stored into where they are; all else is copied there by each
call (`transfer_guard` is told). What fails is raised as on the CPU, at the user's line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ..astpasses.frontend import Output
from ..core.array_classes import is_on_device
from ..core.dims import Dim, substitute
from ..core.ir import Function
from ..core.types import Array
from ..exceptions import ListFull
from ..pipeline import cuda, finished
from ..runtime import entry as abi
from ..runtime.cuda import CheckFailed
from ..runtime.cuda_load import loaded
from ..runtime.cuda_replay import stream_key
from ..runtime.devices import Device, copying, device_of, using
from ..runtime.plans import callbacks_of, raiser, site_table
from ..tree_util import PyTreeDef, tree_map
from . import memory as memory
from .arguments import Call, Dims, Spec
from .captures import capture_leaf, entry_guards, entry_source, read_capture, rooms_of
from .entry import call_roots, leaf_of, output_of, size_names, slot_output, static_leaf
from .execute import Specialisation
from .placement import fetched
from .program import Fixed, Program, Same, Slot, leaf_labels
from .staging import slot_of
from .tracebacks import user_frames


def gpu_specialisation(
    program: Program,
    dims: tuple[Dims, ...],
    least: dict[str, int],
    device: Device,
    names: Sequence[str] = (),
    donated: Sequence[int | str] = (),
) -> Specialisation:
    """A Program ready to run on a GPU. `names`: of the function's parameters, for messages. `donated`: positions and
    names of arguments that nobody reads after the call."""
    runner = Runner(program, device, names, donated)
    return Specialisation(dims, program, runner, {"gpu": runner, "text": runner.emitted.text}, least, device=device)


class Jitted(Protocol):
    """What an entry depends on of a jitted function: see Jit."""

    dispatcher: Any
    static: Sequence[int | str]
    in_order: bool
    wanted: Device | None
    __name__: str


MOST_NUMBERS = 256  # that lie on the device for later calls


class Runner:
    """Runs the calls that a program serves."""

    def __init__(self, program: Program, device: Device, names: Sequence[str], donated: Sequence[int | str]):
        self.program, self.device = program, device
        self.function = finished(program.function)
        # A run that is begun again reads what it was given.
        gifts = _gifts(program, self.function, donated)
        self.emitted = cuda(self.function, {} if rooms_of(program) else program.new_values | gifts)
        self.in_place = dict(self.emitted.in_place)
        self.gifts = [parameter for result, parameter in gifts.items() if result in self.in_place]
        self.raise_site = raiser(site_table(self.emitted.sites), rooms_of(program))
        self.callbacks = callbacks_of(self.emitted.sites)
        self.labels = [f"the captured {capture}" for capture in program.captures]
        labels = leaf_labels(program.structure, names)
        self.labels += [labels[position] for position in memory.leaf_positions(program)]
        self.numbers: dict[tuple, Any] = {}  # on the device, by their bytes: a step's size is given again and again
        with using(device) as cupy:
            self.cupy, self.current = cupy, cupy.cuda.Device(device.id)
            self.loaded = loaded(cupy, device, self.emitted)

    def __call__(self, call: Call, captures: Sequence[Any] | None = None) -> Any:
        memory.check(self.program, call)
        while True:
            held = list(captures) if captures is not None else [read_capture(c) for c in self.program.captures]
            try:
                with using(self.device) as cupy:
                    return self._run(cupy, call, held)
            except ListFull:  # there is more room now
                continue

    def _run(self, cupy: Any, call: Call, held: list[Any]) -> Any:
        given = [*held, *(call.leaves[position] for position in memory.leaf_positions(self.program))]
        sizes: dict[str, int] = {}
        arrays = [
            self._taken(cupy, value, param.type, label, sizes)
            for value, param, label in zip(given, self.function.params, self.labels, strict=True)
        ]
        results = self._results(arrays, sizes)
        return _Output(cupy, self, call, held, arrays, results).whole()

    def _results(self, arrays: list[Any], sizes: dict[str, int]) -> list[Any]:
        """What the program gives for arrays of the device, as the user sees it."""
        for k in _shared(arrays, self.gifts):  # one that is given twice is no gift
            arrays[k] = arrays[k].copy()
        failed = None
        try:
            made = self.loaded(arrays, [sizes[name] for name in self.emitted.sizes], self._effect)
        except CheckFailed as stopped:
            failed = stopped
        if failed is not None:  # out of the handler: the user's error has no context of ours
            self.raise_site(failed.site, 0, failed.values)
        return [self._result(*one, sizes) for one in zip(made, self.program.forms, self.function.results, strict=True)]

    def _taken(self, cupy: Any, value: Any, type_: Array, label: str, sizes: dict[str, int]) -> Any:
        """An argument as the program takes it: on the device, row after row, with one element for rank 0."""
        if is_on_device(value):
            if (place := device_of(value)) != self.device:
                copying("device_to_device", lambda: f"{label} ({value.dtype}{list(value.shape)}) from {place}")
                value = value.copy()
            array = cupy.ascontiguousarray(value)
        else:
            host = np.asarray(value, type_.dtype)
            if not label.startswith("the captured") or host.ndim:
                copying("host_to_device", lambda: f"{label} ({host.dtype}{list(host.shape)}) to {self.device}")
            array = self._number(cupy, host) if not host.ndim else cupy.asarray(np.ascontiguousarray(host))
        _bind(type_, value, tuple(value.shape) if hasattr(value, "shape") else (), sizes)
        return array if type_.dims else array.reshape(1)

    def _number(self, cupy: Any, host: np.ndarray) -> Any:
        """A number on the device, which the program reads only: a stream's own, which does things in order."""
        key = *stream_key(cupy.cuda.get_current_stream()), host.dtype, host.tobytes()
        if key not in self.numbers:
            if len(self.numbers) >= MOST_NUMBERS:
                self.numbers.clear()
            self.numbers[key] = cupy.asarray(host)
        return self.numbers[key]

    def _result(self, array: Any, form: str, result: Any, sizes: dict[str, int]) -> Any:
        """A result as the user sees it: an array; of sizes the number, for which nobody has to wait."""
        if result.type.dims:
            return array
        if form == "python" and isinstance(result.type.value, Dim):
            size = substitute(result.type.value, sizes)
            if isinstance(size, int):
                return size
        return array.reshape(())

    # --- calls that the dispatcher finds ----------------------------------------------------------

    def entry(self, jit: Jitted, call: Call, specs: Sequence[Spec], least: dict[str, int]) -> abi.Entry | None:
        """By which the dispatcher finds calls like this one; None for those that are looked at in Python: with stores,
        arrays that are copied to the device, and what only the run decides."""
        program = self.program
        if program.writes or rooms_of(program) or _has_decided(program.out):
            return None
        params = self.function.params
        captures = [
            (entry_source(capture), self._leaf(read_capture(capture), capture_leaf(capture, param.type)))
            for capture, param in zip(program.captures, params)
        ]
        leaves: list[abi.Leaf] = [
            static_leaf(leaf.value) if isinstance(leaf, Fixed) else self._leaf(given, leaf_of(spec, params[leaf].type))
            for given, leaf, spec in zip(call.leaves, program.leaves, specs, strict=True)
        ]
        found = [*leaves, *(leaf for _, leaf in captures)]
        if any(isinstance(leaf, abi.ArrayLeaf) for leaf in found):
            return None
        if jit.wanted is None and not any(isinstance(leaf, abi.DeviceLeaf) for leaf in found):
            return None  # a default, which may be another one at the next call, says where it runs
        parameters = [leaf for _, leaf in captures]
        parameters += [leaves[position] for position in memory.leaf_positions(program)]
        guards, comparisons = entry_guards(program.guards)
        self.symbols = tuple(size_names(self.function))
        return abi.Entry(
            address=0,
            roots=(
                *call_roots(call.structure, leaves, jit.dispatcher.parameters, jit.static, jit.in_order),
                *(abi.Root(source, leaf) for source, leaf in captures),
            ),
            parameters=tuple(parameters),
            symbols=self.symbols,
            results=tuple(abi.RunTime(result.type.dtype, result.type.ndim) for result in self.function.results),
            output=output_of(program.out, iter([slot_output(slot, leaves, parameters) for slot in program.slots])),
            guards=guards,
            comparisons=comparisons,
            minimum=least or None,
            launch=self.launch,
            name=jit.__name__,
        )

    def _leaf(self, given: Any, leaf: abi.Leaf) -> abi.Leaf:
        """An array of the device is matched by what it says of itself."""
        if not isinstance(leaf, abi.ArrayLeaf) or not is_on_device(given):
            return leaf
        return abi.DeviceLeaf(type(given), leaf.dtype, leaf.dims, self.device.id)

    def launch(self, values: tuple, sizes: tuple[int, ...]) -> tuple:
        """The results of a call that the dispatcher has found to fit."""
        with user_frames(), self.current:
            arrays = []
            for value, param, label in zip(values, self.function.params, self.labels):
                if type(value) is self.cupy.ndarray:
                    array = self.cupy.ascontiguousarray(value)
                    arrays.append(array if param.type.dims else array.reshape(1))
                else:
                    arrays.append(self._taken(self.cupy, value, param.type, label, {}))
            return tuple(self._results(arrays, dict(zip(self.symbols, sizes))))

    def _effect(self, site: int, *arrays: np.ndarray) -> Any:
        """What a program prints, or otherwise does with Python, and what that gives."""
        ranks = self.emitted.sites[site].ranks
        ranks = (*ranks, *(0,) * (len(arrays) - len(ranks)))
        return self.callbacks[site].function(*(a if rank else a.reshape(())[()] for a, rank in zip(arrays, ranks)))


def _gifts(program: Program, function: Function, donated: Sequence[int | str]) -> dict[int, int]:
    """{result: the parameter in whose memory it may be made}: of the same type, one for each, of arguments that are
    neither stored into nor returned."""
    args, kwargs = program.structure.children()
    keys = (kwargs.node_data() or (dict, ()))[1]
    named = [
        k for k, child in [*enumerate(args.children()), *zip(keys, kwargs.children())] for _ in range(child.num_leaves)
    ]
    kept = {slot.leaf for slot in program.slots if isinstance(slot, Same)}
    free = [
        parameter
        for leaf, parameter in enumerate(program.leaves)
        if named[leaf] in donated and leaf not in kept and not isinstance(parameter, Fixed)
        if program.leaves.count(parameter) == 1 and parameter not in program.new_values.values()
    ]
    found: dict[int, int] = {}
    for result in sorted({slot.index for slot in program.slots if isinstance(slot, Slot)} - set(program.new_values)):
        type_ = function.results[result].type
        fitting = [k for k in free if type_.dims and function.params[k].type == type_]
        if fitting:
            found[result] = fitting[0]
            free.remove(fitting[0])
    return found


def _shared(arrays: Sequence[Any], some: Sequence[int]) -> list[int]:
    """Those of some arrays that share memory with another one. All lie row after row."""
    ranges = [(a.data.ptr, a.data.ptr + a.nbytes) for a in arrays] if some else []

    def meets(k: int) -> bool:
        begin, end = ranges[k]
        return any(b < end and begin < e for j, (b, e) in enumerate(ranges) if j != k)

    return [k for k in some if meets(k)]


_LEAF = PyTreeDef(None)
_DECIDED = Output.__module__.rpartition(".staging")[0]  # the front end's own kinds of nodes


def _has_decided(tree: PyTreeDef) -> bool:
    """Whether the run decides something of a structure."""
    return _is_decided(tree) or any(map(_has_decided, tree.children()))


def _is_decided(tree: PyTreeDef) -> bool:
    """Whether a node stands for what only the run knows."""
    return tree.kind is not None and tree.kind.type.__module__.startswith(_DECIDED)


def _bind(type_: Any, value: Any, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    """The sizes that a parameter's type names."""
    for dim, size in zip(type_.dims, shape):
        if isinstance(dim, Dim) and dim.is_sym:
            sizes.setdefault(dim.name, size)
    if isinstance(type_.value, Dim) and type_.value.is_sym:
        sizes.setdefault(type_.value.name, int(value))


class _Output:
    """What a call gives back, and what it leaves in the arrays and objects that it stores into."""

    def __init__(
        self, cupy: Any, runner: Runner, call: Call, held: list[Any], arrays: Sequence[Any], results: Sequence[Any]
    ):
        self.cupy, self.runner, self.call, self.held = cupy, runner, call, held
        self.arrays, self.results, self.program = arrays, results, runner.program

    def whole(self) -> Any:
        if self.program.writes:
            self._store()
        return self._tree(self.program.out, iter(self.program.slots), False)

    def _tree(self, tree: PyTreeDef, slots: Any, on_host: bool, stored: bool = False) -> Any:
        """A tree of output. What the run decides (which of several objects, a text, a list of unknown length) is made
        of numbers on the host; its arrays go back."""
        if tree.is_leaf():
            return self._leaf(next(slots), on_host, stored)
        decided = _is_decided(tree)
        children = [self._tree(child, slots, on_host or decided, stored) for child in tree.children()]
        made = tree.kind.unflatten(tree.metadata, children)  # type: ignore[union-attr]
        if not decided or on_host:
            return made
        return tree_map(lambda leaf: self.cupy.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, made)

    def _leaf(self, slot: Any, on_host: bool, stored: bool) -> Any:
        if isinstance(slot, Slot):
            value, form = self.results[slot.index], self.program.forms[slot.index]
            if isinstance(value, int):
                return value
            if on_host or stored and form != "array":
                host = fetched(value, lambda: "a result") if stored else value.get()
                return host if host.ndim else host[()].item() if form == "python" else host[()]
            stored_into = slot.index in self.runner.in_place and slot.index in self.program.new_values
            return value.copy() if stored_into else value
        if isinstance(slot, Same):
            return self._argument(slot.leaf)
        return slot.value if isinstance(slot, Fixed) else self.held[slot.index]

    def _argument(self, leaf: int) -> Any:
        """An argument that is returned as it is: an array of the host's as what it became on the device."""
        value, parameter = self.call.leaves[leaf], self.program.leaves[leaf]
        if isinstance(parameter, Fixed) or not isinstance(value, np.ndarray):
            return value
        for result, written in self.program.new_values.items():
            if written == parameter:
                return self.results[result]
        return self.arrays[parameter] if value.ndim else self.arrays[parameter].reshape(())

    def _store(self) -> None:
        """Makes the stores: into arrays here, into objects by the front end, which knows how they are found."""
        arrays = [w for w in self.program.writes if w.kind in ("argument", "capture")]
        objects = []
        for write in self.program.writes:
            if write not in arrays:
                slots = iter([slot_of(output) for output in write.outputs])
                value = self._tree(write.tree, slots, False, stored=True)
                objects.append(replace(write, tree=_LEAF, outputs=(Output("static", value=value),)))
        for write in arrays:
            target = self.call.leaves[write.target] if write.kind == "argument" else self.held[write.target]
            self._into(target, self.results[write.index])
        if objects:
            alone = replace(self.program.origin, writes=tuple(objects), out_tree=_LEAF, outputs=(Output("static"),))
            alone.result((), self.call.args, self.call.kwargs)

    def _into(self, target: Any, value: Any) -> None:
        if not is_on_device(target):
            target[...] = fetched(value, lambda: "the new value of an argument")
        elif target.data.ptr != value.data.ptr or target.strides != value.strides:
            target[...] = value


__all__ = ["Runner", "gpu_specialisation"]
