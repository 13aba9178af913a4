"""What leaves a staging: result leaves, and the stores into objects that existed before the call.

In: the user's result and the journal. Out: results of the Function, and how they become the user's values.
"""

from __future__ import annotations

import array
import dataclasses
import types
from typing import Any

import numpy as np

from metaphrase import tree_util
from metaphrase.core.ir import Atom, Literal, Var
from metaphrase.source import UnsupportedError

from ..calls.text import Text
from ..flow.gathering import Rows, all_known, columns, expanded, is_gathered, lists_in, not_a_list
from ..flow.joins import instance_parts, parts
from ..rewrite.plain import NoAttribute
from ..values.chosen import chosen, step_of, viewed
from ..values.listed import listed
from ..values.optional import Either, made_anew, one_value, optional, text_of_values
from ..values.phi import Phi, family
from ..values.recipes import made_of
from ..values.sources import AttributeSource, ItemSource, ObjectSource, Source
from ..values.staged_values import Box, Maybe, Number, OneOf, Staged, StagedArray, Unsettled
from .captured import guard_same, is_copy, known
from .journal import AttributeLocation, BoxLocation, CellLocation, ItemLocation, StructureLocation
from .made_results import holds_iterator, is_ours, recipe_of, refuse_held
from .session import Session
from .settling import settled
from .staged import Output, Write


class Own(StagedArray):
    """An array that may be one of several, where it is none of those."""

    __slots__ = ()


class Collector:
    """Gathers `results` and describes the outputs over them."""

    def __init__(self, here: Session, boxes: dict[int, StagedArray]):
        self.here, self.boxes = here, boxes
        self.results: list[Atom] = []
        self.containers: dict[int, tuple[tuple, Any]] = {}
        self.stored: dict[int, Output] | None = None  # arrays that several places are to hold, by their box
        self.span: Any = None  # where the store is that is looked at
        self.within: list = []  # the objects that are being taken apart
        self.holders: dict[int, int] = {}  # how many places hold an array when the call has ended, by its box

    def note_containers(self, original: Any, copy: Any, path: tuple = ()) -> None:
        """Remember which of the user's containers each copy stands for."""
        kind = tree_util.kind_of(copy)
        if kind is None:
            return
        if copy is not None and not isinstance(copy, tuple):
            self.containers[id(copy)] = (path, copy)
        given = tree_util.kind_of(original)
        assert given is not None
        children, metadata = given.flatten(original)
        for key, before, after in zip(given.keys(original, metadata), children, kind.flatten(copy)[0]):
            self.note_containers(before, after, (*path, key))

    def outputs(self, result: Any) -> tuple[Any, list[Output]]:
        """The structure of a result and one Output a leaf."""
        leaves, tree = self.take_apart(result)
        return tree, [self.output(leaf) for leaf in leaves]

    def take_apart(self, result: Any) -> tuple[list, tree_util.PyTreeDef]:
        """The leaves and the structure of a result; an object that the call made is part of the structure."""
        leaves, tree = tree_util.tree_flatten(
            known(self.here, result),
            is_leaf=lambda v: isinstance(v, Unsettled) or is_gathered(v) or id(v) in self.here.deques,
        )
        if any(id(v) in self.here.deques for v in leaves):
            raise self.here.unsupported(
                "the function returns a deque", "return list(queue), or an array", code="gathered"
            )
        if any(hasattr(type(v), "__next__") and self.here.is_fresh(v, 0) for v in leaves):
            raise holds_iterator(self.here, None)
        self.refuse_static(tree)
        objects = [
            self.take_optional_apart(leaf)
            or self.take_choice_apart(leaf)
            or self.take_text_apart(leaf)
            or self.take_copy_apart(leaf)
            or self.take_list_apart(leaf)
            or self.take_recipe_apart(leaf)
            or self.take_object_apart(leaf)
            or self.take_alias_apart(leaf)
            for leaf in leaves
        ]
        if all(part is None for part in objects):
            return leaves, tree
        inner = iter(part[1] if part else tree_util.tree_structure(0) for part in objects)

        def build(node: tree_util.PyTreeDef) -> tree_util.PyTreeDef:
            if node.is_leaf():
                return next(inner)
            return tree_util.PyTreeDef(node.kind, node.metadata, tuple(map(build, node.children())))

        found = [leaf for whole, part in zip(leaves, objects) for leaf in (part[0] if part else [whole])]
        return found, build(tree)

    def refuse_static(self, tree: tree_util.PyTreeDef) -> None:
        """What registered classes keep beside their leaves is the same at each call."""
        if tree.kind is not None and tree.metadata is not None:
            refuse_held(self.here, (tree.metadata, tree.kind.type), self.span)
        for child in tree.children():
            self.refuse_static(child)

    def take_optional_apart(self, value: Any) -> tuple[list, tree_util.PyTreeDef] | None:
        """What is None (or a number) on some paths: whether it is there, and its leaves."""
        if isinstance(value, Either):
            leaves, tree = self.take_apart(value.value)
            return [value.flag, *leaves], optional(tree, value.number)
        if not isinstance(value, Maybe) or value.missing is not None and not isinstance(value.missing, NoAttribute):
            return None
        leaves, tree = self.take_apart(value.value)
        if value.missing is not None:  # an attribute is there in what the call gives, set or not
            return leaves, tree
        return [value.flag, *leaves], optional(tree)

    def take_choice_apart(self, value: Any) -> tuple[list, tree_util.PyTreeDef] | None:
        """One of several Python values: its number."""
        if isinstance(value, OneOf):
            refuse_held(self.here, value.values, self.span)
        return ([value.tag], one_value(value.values)) if isinstance(value, OneOf) else None

    def take_text_apart(self, value: Any) -> tuple[list, tree_util.PyTreeDef] | None:
        """A string with values of the run in it: these."""
        if not isinstance(value, Text):
            return None
        if isinstance(value.template, OneOf):
            leaves = [value.template.tag, *value.values]
            return leaves, text_of_values(value.template.values, len(value.values))
        return list(value.values), text_of_values((value.template,), len(value.values))

    def take_copy_apart(self, value: Any) -> tuple[list, tree_util.PyTreeDef] | None:
        """A container that is no pytree, and was not there before: each call gives another one."""
        known = id(value) in self.here.roots or id(value) in self.here.given
        return None if known or type(value) not in (set, bytearray, array.array) else ([], made_anew(value))

    def take_list_apart(self, value: Any) -> tuple[list, tree_util.PyTreeDef] | None:
        """A list that was gathered: its items, or, where only the run knows how many there are, an array for
        each leaf of an item."""
        if not is_gathered(value):
            return None
        if all_known(value):
            return self.take_apart(expanded(self.here, value))
        if self.here.decisions.rolls_few:  # it is staged again, with the loop unrolled: the list has its items then
            raise not_a_list(self.here)
        item, arrays, python = columns(self.here, value)
        return list(arrays), listed(lists_in(item), python)

    def take_recipe_apart(self, value: Any) -> tuple[list, tree_util.PyTreeDef] | None:
        """An object of Python's own classes, or of one derived from them, that the call made."""
        found = recipe_of(self.here, value)
        if found is None:
            return None
        refuse_held(self.here, (found[0].of, type(value)), self.span)
        made = self.parts_of(value, found[1])
        return [leaf for part in made for leaf in part[0]], made_of(found[0], [part[1] for part in made])

    def take_object_apart(self, value: Any) -> tuple[list, tree_util.PyTreeDef] | None:
        if not self.here.is_fresh(value, 0) or is_ours(type(value)):
            return None
        found = parts(value) or instance_parts(value)
        if found is None:
            return None
        kind, children, metadata = found
        refuse_held(self.here, type(value), self.span)
        made = self.parts_of(value, children)
        tree = tree_util.PyTreeDef(kind, metadata, tuple(part[1] for part in made))
        return [leaf for part in made for leaf in part[0]], tree

    def parts_of(self, value: Any, children: list) -> list[tuple[list, tree_util.PyTreeDef]]:
        """The children of an object, taken apart."""
        if any(value is outer for outer in self.within):
            raise UnsupportedError(
                f"the function returns a {type(value).__name__} that holds itself",
                self.span or self.here.span(),
                code="result",
                remedy="leave out what leads back to it",
            )
        self.within.append(value)
        made = [self.take_apart(child) for child in children]
        self.within.pop()
        return made

    def take_alias_apart(self, value: Any) -> tuple[list, tree_util.PyTreeDef] | None:
        """A stored array that is, or may be, another one that outlives the call, or a view of it."""
        if self.stored is None or not isinstance(value, StagedArray) or value.session is not self.here:
            return None
        if value.chain:
            return self.view_of(value) if any(map(self.outlives_too, family(value.box))) else None
        if value.box.phi is None or isinstance(value, Own):
            return None
        choices = value.box.phi.choices if isinstance(value.box.phi, Phi) else []
        if not isinstance(value.box.phi, Phi) and any(map(self.outlives_too, family(value.box)[1:])):
            raise UnsupportedError(
                "an array is kept that may or may not be one of before the call, or one kept elsewhere",
                self.span or self.here.span(),
                remedy="store a copy of it: x.copy()",
                code="alias",
            )
        flags, parts = [], []
        for flag, box, _, chain in choices:
            if any(map(self.outlives_too, family(box))):
                known_flag = flag.value if isinstance(flag, Literal) else flag
                flags.append(Number(self.here, flag, bool) if isinstance(flag, Var) else bool(known_flag))
                parts.append(self.take_apart(StagedArray(box, chain, value.type)))
        if not flags:
            return None
        if len(flags) == len(choices) and value.box.phi.total:
            flags.pop()  # it is the last one where it is none of the others
        else:
            parts.append(([Own(value.box)], tree_util.tree_structure(0)))
        leaves = [leaf for part in parts for leaf in part[0]]
        return [*flags, *leaves], chosen([part[1] for part in parts])

    def view_of(self, value: StagedArray) -> tuple[list, tree_util.PyTreeDef]:
        """A view, by its base and the numbers that say which part of it it is."""
        steps: list = []
        numbers: list = []
        type_ = value.box.atom.type.plain
        for step in value.chain:
            made, needed = step_of(step, type_.ndim)
            steps.append(made)
            numbers += map(self.number, needed)
            type_ = step.type(type_)
        leaves, base = self.take_apart(StagedArray(value.box))
        return [*leaves, *numbers], viewed(tuple(steps), base, len(numbers))

    def number(self, value: Any) -> Any:
        """An atom or a dim as the number that it is."""
        if isinstance(value, Literal):
            return int(value.value)
        if isinstance(value, int):
            return value
        return Number(self.here, value if isinstance(value, Var) else self.here.dim_atom(value), int)

    def outlives_too(self, box: Box) -> bool:
        """Whether an array that something stored may share is reached by another way after the call."""
        given = box.origin is not None and not isinstance(box.origin, str)
        return given or self.holders.get(id(box), 0) > 1

    def count_holders(self) -> None:
        """Count the places that hold each array, or may hold it."""
        todo: list[tuple] = []
        for location in self.here.journal.since(0):
            if self.here.is_fresh(location.owner, 0):
                continue
            if isinstance(location, AttributeLocation | ItemLocation):
                key = location.name if isinstance(location, AttributeLocation) else location.index
                todo.append((location.owner, key, location.read()))
            elif isinstance(location, StructureLocation):
                todo += _items(location.owner)
        seen: set[tuple] = set()
        while todo:
            owner, key, value = todo.pop()
            if (place := (id(owner), key)) in seen:
                continue
            seen.add(place)
            if isinstance(value, StagedArray):
                for box in family(value.box):
                    self.holders[id(box)] = self.holders.get(id(box), 0) + 1
            else:
                todo += _items(value)

    def output(self, leaf: Any) -> Output:
        leaf = settled(leaf)
        if isinstance(leaf, np.ndarray):
            leaf = self.here.lift(leaf)
        if not isinstance(leaf, Staged):
            refuse_held(self.here, leaf, self.span)
            return Output("static", value=leaf.concrete() if isinstance(leaf, Text) else leaf)
        if isinstance(leaf, StagedArray) and leaf.session is self.here and not leaf.chain and leaf.box.phi is None:
            origin = leaf.box.origin
            if isinstance(origin, tuple) and origin[0] == "argument":
                return Output("argument", origin[1])
            if isinstance(origin, (Source, StagedArray)):
                keys = [source for source, _ in self.here.captures.values()]
                return Output("capture", next(k for k, s in enumerate(keys) if s is origin))
        python = leaf.python if isinstance(leaf, Number) else None
        if self.stored is None or not isinstance(leaf, StagedArray) or leaf.chain:
            return self.add(self.here.atom(leaf), python, isinstance(leaf, StagedArray))
        if id(leaf.box) not in self.stored:
            self.stored[id(leaf.box)] = self.add(self.here.atom(leaf), python, True)
        return self.stored[id(leaf.box)]

    def add(self, atom: Atom, python: type | None = None, array: bool = True) -> Output:
        self.results.append(atom)
        return Output("result", len(self.results) - 1, python=python, array=array)

    def writes(self) -> list[Write]:
        """The stores that outlive the call."""
        out: list[Write] = []
        self.stored = {}
        self.count_holders()
        for location in self.here.journal.since(0):
            self.span = location.span
            if isinstance(location, BoxLocation):
                made = self.box_write(location)
                out += [made] if made else []
            elif isinstance(location, AttributeLocation) and (place := self.place(location.owner)):
                tree, outputs = self.outputs(location.read())
                out.append(Write("attribute", place[0], key=location.name, tree=tree, outputs=tuple(outputs)))
            elif isinstance(location, CellLocation | AttributeLocation):
                if not self.here.is_fresh(location.owner, 0) and self.outlives(location):
                    raise UnsupportedError(
                        f"the function changes {location.describe()}, which outlives the call",
                        location.span,
                        code="outer-write",
                        remedy="return the new value instead",
                    )
            elif isinstance(location, ItemLocation) and is_gathered(location.owner):
                continue  # written as a whole: a list that grows has another structure
            elif id(location.owner) in self.containers:
                out.append(self.container_write(location))  # type: ignore[arg-type]
            elif isinstance(location, ItemLocation) and (source := self.root(location.owner)):
                tree, outputs = self.outputs(location.read())
                out.append(Write("item", source, key=location.index, tree=tree, outputs=tuple(outputs)))
            elif id(location.owner) in self.here.roots:
                inside = isinstance(self.here.roots[id(location.owner)][0], AttributeSource | ItemSource)
                remedy = "pass it as an argument, or return the new value"
                raise UnsupportedError(
                    f"the function changes {location.describe()} that it was not given"
                    + (" by itself: another object holds it" if inside else ""),
                    location.span,
                    code="outer-write",
                    remedy="store a new one: o.items = o.items + [x]" if inside else remedy,
                )
        return out

    def place(self, owner: Any) -> tuple | None:
        """Where an object stands whose attributes outlive the call: a path into the arguments, or a source,
        in a tuple; None for one that the call made, and for modules and classes."""
        if id(owner) in self.containers:
            return (self.containers[id(owner)][0],)
        if isinstance(owner, (type, types.ModuleType)) or self.here.is_fresh(owner, 0):
            return None
        if id(owner) in self.here.roots:
            return (self.here.roots[id(owner)][0],)
        named = ObjectSource(owner, type(owner).__name__.lower())
        return (named,) if id(owner) in self.here.given else None

    def root(self, owner: Any) -> Source | None:
        """Where a captured list or dict stands into which an item is stored; it is none of the others."""
        found = self.here.roots.get(id(owner))
        if found is None or is_copy(self.here, owner) or type(owner) not in (list, dict):
            return None
        for source, other in list(self.here.roots.values()):
            if type(other) is type(owner) and other is not owner and not is_copy(self.here, other):
                guard_same(self.here, found[0], source, same=False)
        return found[0]

    def outlives(self, location: Any) -> bool:
        """Cells and attributes of objects that the call did not make."""
        if isinstance(location, CellLocation):
            return any(location.owner is cell for cell in self.here.outer_cells)
        return isinstance(location.owner, (type, types.ModuleType)) or id(location.owner) in self.here.roots

    def box_write(self, location: BoxLocation) -> Write | None:
        box = location.owner
        origin = box.origin
        if origin is None or isinstance(origin, str):
            return None
        self.here.refresh(box)
        first = next(
            old for where, old in self.here.journal.notes if isinstance(where, BoxLocation) and where.owner is box
        )
        if box.atom is first and not box.stored:  # what is restored was another array's meanwhile, if they are one
            return None
        index = self.add(box.atom).index
        contiguous = id(box) in self.here.layouts.contiguous
        if isinstance(origin, tuple):
            return Write("argument", origin[1], index, contiguous=contiguous)
        keys = [source for source, _ in self.here.captures.values()]
        which = next(k for k, s in enumerate(keys) if s is origin)
        return Write("capture", which, index, contiguous=contiguous)

    def container_write(self, location: ItemLocation | StructureLocation) -> Write:
        path, container = self.containers[id(location.owner)]
        if isinstance(location, StructureLocation):
            tree, outputs = self.outputs(container.copy())
            return Write("structure", path, tree=tree, outputs=tuple(outputs))
        tree, outputs = self.outputs(container[location.index])
        return Write("item", path, key=location.index, tree=tree, outputs=tuple(outputs))


def _items(value: Any) -> list[tuple]:
    """What a container or an object holds: (the container, the key, the value)."""
    if isinstance(value, Rows):
        return [(value, key, array) for key, array in enumerate(value.arrays)]
    found = parts(value)
    if found is None:
        return []
    kind, children, metadata = found
    keys = [key[0] for key in map(dataclasses.astuple, kind.keys(value, metadata))]
    return [(value, key, child) for key, child in zip(keys, children)]
