"""Random operations through libnbd against a byte array. Arguments: URI, seed, operations."""
import errno
import random
import sys

import nbd

uri, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draw = random.Random(seed)
BLOCK = 512


def connected():
    handle = nbd.NBD()
    handle.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    # The server is to refuse what libnbd would not even send.
    handle.set_strict_mode(0)
    handle.connect_uri(uri)
    return handle


handles = [connected(), connected()]
size = handles[0].get_size()
model = bytearray(handles[0].pread(size, 0))


def stretch(longest=256):
    if draw.randrange(2):
        length = draw.randint(1, longest) * BLOCK
        return draw.randrange(0, size - length + 1, BLOCK), length
    # At any byte; often to the last one.
    length = draw.randint(1, draw.choice([9, 1000, longest * BLOCK]))
    return draw.choice([size - length, draw.randint(0, size - length)]), length


def fails(with_errno, call):
    try:
        call()
    except nbd.Error as error:
        assert error.errnum == with_errno, (error.errnum, with_errno)
        return
    raise AssertionError("it should have failed")


def fua():
    return draw.choice([0, nbd.CMD_FLAG_FUA])


def check_status(handle, offset, length):
    extents = []
    handle.block_status(length, offset, lambda context, at, pairs, error: extents.extend(pairs) or 0)
    at = offset
    for bytes_, flags in zip(extents[::2], extents[1::2]):
        assert bytes_ > 0
        if flags & nbd.STATE_ZERO:
            end = min(at + bytes_, size)
            assert not any(model[at:end]), "what is said to be zero is not"
        at += bytes_
    assert at > offset


for step in range(count):
    handle = draw.choice(handles)
    what = draw.randrange(12)
    offset, length = stretch()
    if what < 3:
        assert handle.pread(length, offset) == model[offset : offset + length], step
    elif what < 6:
        data = draw.randbytes(length)
        handle.pwrite(data, offset, fua())
        model[offset : offset + length] = data
    elif what == 6:
        flags = draw.choice([0, nbd.CMD_FLAG_NO_HOLE, nbd.CMD_FLAG_FAST_ZERO]) | fua()
        handle.zero(length, offset, flags)
        model[offset : offset + length] = bytes(length)
    elif what == 7:
        # What was trimmed may read as anything.
        handle.trim(length, offset, fua())
        model[offset : offset + length] = handle.pread(length, offset)
    elif what == 8:
        handle.flush()
        handle.cache(length, offset)
    elif what == 9:
        check_status(handle, offset, length)
    elif what == 10:
        # Many at once, which share blocks and no bytes.
        begin = draw.choice([0, draw.randrange(4096)])
        pieces = [(at, 4096) for at in draw.sample(range(begin, size - 4096, 4096), 40)]
        cookies = []
        for at, bytes_ in pieces:
            buffer = nbd.Buffer.from_bytearray(bytearray(draw.randbytes(bytes_)))
            cookies.append((handle.aio_pwrite(buffer, at), buffer, at))
        for cookie, buffer, at in cookies:
            while not handle.aio_command_completed(cookie):
                handle.poll(-1)
            model[at : at + 4096] = buffer.to_bytearray()
    else:
        beyond = size - draw.randint(0, 4 * BLOCK)
        over = size - beyond + draw.choice([1, BLOCK])
        fails(errno.EINVAL, lambda: handle.pread(over, beyond))
        fails(errno.ENOSPC, lambda: handle.pwrite(bytes(over), beyond))
        fails(errno.ENOSPC, lambda: handle.zero(over, beyond))
        fails(errno.EINVAL, lambda: handle.trim(over, beyond))
        fails(errno.EINVAL, lambda: handle.pread(BLOCK, 2**63 - BLOCK))

assert handles[0].pread(size, 0) == model
for handle in handles:
    handle.shutdown()
