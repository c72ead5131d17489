"""Reads BTF, a kernel's own description of its types: where a field lies, and which argument of a function has a type."""

import struct

from .failure import Failure

INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, PROTO, VAR, DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64 = range(1, 20)
# Bytes after the common 12 of a type: fixed, and for each of its members.
TAIL = {INT: (4, 0), ARRAY: (12, 0), STRUCT: (0, 12), UNION: (0, 12), ENUM: (0, 8), PROTO: (0, 8), VAR: (4, 0), DATASEC: (0, 12), DECL_TAG: (4, 0), ENUM64: (0, 12)}
TRANSPARENT = (TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG)


class Btf:
    def __init__(self, data):
        if len(data) < 24 or struct.unpack_from("<H", data)[0] != 0xEB9F:
            raise Failure("the kernel's BTF is damaged (expected a file that begins with 0xeb9f)")
        header, types, types_len, strings, strings_len = struct.unpack_from("<IIIII", data, 4)
        self.data = data
        self.strings = data[header + strings : header + strings + strings_len]
        # By number; 0 is void.
        self.at = [None]
        self.named = {}
        at, end = header + types, header + types + types_len
        while at < end:
            name, info, _ = struct.unpack_from("<III", data, at)
            kind, count = info >> 24 & 0x1F, info & 0xFFFF
            if name and kind in (STRUCT, FUNC, TYPEDEF):
                self.named.setdefault((kind, self.string(name)), len(self.at))
            self.at.append(at)
            fixed, member = TAIL.get(kind, (0, 0))
            at += 12 + fixed + member * count

    def string(self, at):
        return self.strings[at : self.strings.index(b"\0", at)].decode()

    def type(self, number):
        """Kind, name, number of members, size or type, and where the rest is; qualifiers and typedefs are skipped."""
        while True:
            if number == 0:
                return 0, "void", 0, 0, 0
            at = self.at[number]
            name, info, size = struct.unpack_from("<III", self.data, at)
            kind = info >> 24 & 0x1F
            if kind not in TRANSPARENT:
                return kind, self.string(name), info & 0xFFFF, size, at + 12
            number = size

    def member(self, number, name):
        """Offset in bytes and type of a member, also of one in an unnamed struct or union within."""
        kind, _, count, _, at = self.type(number)
        if kind not in (STRUCT, UNION):
            return None
        for index in range(count):
            label, inner, bits = struct.unpack_from("<III", self.data, at + 12 * index)
            # The upper byte is the size of a bit field, if the struct has such.
            offset = (bits & 0xFFFFFF) // 8
            if label and self.string(label) == name:
                return offset, inner
            if not label:
                found = self.member(inner, name)
                if found:
                    return offset + found[0], found[1]
        return None

    def has_struct(self, name):
        return (STRUCT, name) in self.named

    def enumerator(self, name):
        """The value of a name of any enumeration; None if there is no such."""
        wanted = self.strings.find(b"\0" + name.encode() + b"\0") + 1
        for at in self.at[1:] if wanted else []:
            _, info, _ = struct.unpack_from("<III", self.data, at)
            step = TAIL[ENUM][1] if info >> 24 & 0x1F == ENUM else TAIL[ENUM64][1] if info >> 24 & 0x1F == ENUM64 else 0
            for index in range(info & 0xFFFF if step else 0):
                label, value = struct.unpack_from("<II", self.data, at + 12 + step * index)
                if label == wanted:
                    return value
        return None

    def arguments(self, function=None, tracepoint=None):
        """The types of the arguments of a function, or of a tracepoint (without the data of its probe); None if there is no such."""
        if function:
            number = self.named.get((FUNC, function))
            if number is None:
                return None
            proto = self.type(number)[3]
        else:
            number = self.named.get((TYPEDEF, f"btf_trace_{tracepoint}"))
            if number is None:
                return None
            proto = self.type(number)[3]
        _, _, count, _, at = self.type(proto)
        types = [struct.unpack_from("<II", self.data, at + 8 * index)[1] for index in range(count)]
        return types[1:] if tracepoint else types

    def pointed_at(self, number):
        """The name of the struct that a pointer points at, or None for another type."""
        kind, _, _, target, _ = self.type(number)
        return self.type(target)[1] if kind == PTR and target else None

    def fetch(self, root, struct_name, path):
        """An argument of a probe: the field `path`, such as `bio->bi_iter.bi_sector`, of the struct that `root`, such as `$arg1`, points at.
        None if this kernel has no such field."""
        number = self.named.get((STRUCT, struct_name))
        if number is None:
            return None
        text, offset = root, 0
        steps = path.replace("->", ".>").split(".")
        for index, step in enumerate(steps):
            follow = step.startswith(">")
            if follow:
                kind, _, _, target, _ = self.type(number)
                if kind != PTR:
                    return None
                text, offset, number = f"+{offset}({text})", 0, target
            name, _, element = step.lstrip(">").partition("[")
            found = self.member(number, name)
            if not found:
                return None
            offset, number = offset + found[0], found[1]
            kind, _, _, _, at = self.type(number)
            if kind == ARRAY:
                number = struct.unpack_from("<I", self.data, at)[0]
                offset += int(element.rstrip("]") or 0) * self.size(number)
        size = self.size(number)
        return f"+{offset}({text}):u{size * 8}" if size in (1, 2, 4, 8) else f"+{offset}({text})"

    def size(self, number):
        kind, _, _, size, _ = self.type(number)
        return 8 if kind == PTR else size
