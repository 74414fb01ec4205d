"""What users pass becomes what kernels may run on, or an error that says why not."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from linksweep.errors import ArgumentError
from linksweep.functions.arrays import Argument, Signature, call

COORDINATES = "one per coordinate"
SIGNATURE = Signature(
    "inverse_dynamics",
    (Argument("q", (6,), COORDINATES), Argument("qd", (6,), COORDINATES), Argument("f_ext", (2, 6))),
    (Argument("tau", (6,)),),
)
SEVERAL = Signature("both", (Argument("q", (3,)), Argument("m", ())), (Argument("A", (3, 3)), Argument("s", ())))
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def check(inputs, outputs):
    """Assert everything that machine code relies on."""
    count = outputs[0].shape[0]
    dtype = outputs[0].dtype
    assert dtype in FLOATS and count >= 1
    for array in inputs + outputs:
        assert type(array) is np.ndarray and array.ndim == 2
        assert array.dtype == dtype and array.dtype.isnative and array.flags.aligned
        assert array.__array_interface__["data"][0] % dtype.itemsize == 0
        assert array.shape[0] == count or (array.shape[0] == 1 and not any(array is o for o in outputs))
        if array.size:
            assert array.strides[1] == dtype.itemsize
            assert array.strides[0] >= 0 and array.strides[0] % dtype.itemsize == 0
    for index, output in enumerate(outputs):
        assert output.flags.writeable
        if output.size:
            assert count == 1 or output.strides[0] >= output.shape[1] * dtype.itemsize
        for other in inputs + outputs[index + 1 :]:
            assert not np.shares_memory(output, other)


def toy(inputs, outputs):
    """tau = q + 2 qd + the sum over links of f_ext, after poisoning the outputs: no input is among them."""
    check(inputs, outputs)
    for output in outputs:
        output[...] = np.nan
    q, qd, f = inputs
    outputs[0][...] = q + 2 * qd + f.reshape(len(f), 2, 6).sum(1)


def expected(q, qd, f, dtype: np.typing.DTypeLike = float):
    q, qd, f = (np.asarray(a).astype(dtype) for a in (q, qd, f))
    return q + 2 * qd + f.sum(-2)


def run(*args, **options):
    return call(SIGNATURE, lambda dtype: toy, args, **options)


def toy_several(inputs, outputs):
    check(inputs, outputs)
    q, m = inputs
    outputs[0][...] = (q[:, :, None] * q[:, None, :]).reshape(-1, 9)
    outputs[1][...] = m


def run_several(*args, **options):
    return call(SEVERAL, lambda dtype: toy_several, args, **options)


RNG = np.random.default_rng(0)
Q, QD, F = RNG.normal(size=(5, 6)), RNG.normal(size=(5, 6)), RNG.normal(size=(5, 2, 6))


# ---- what is accepted


def unaligned(array):
    buffer = np.zeros(array.nbytes + 1, np.uint8)
    view = buffer[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    assert not view.flags.aligned or array.itemsize == 1 or array.size == 0
    return view


def odd_row_stride(array):
    """A field of packed records: rows are a multiple of 1 byte apart."""
    records = np.zeros(array.shape[:-1], np.dtype([("pad", "u1"), ("x", array.dtype, array.shape[-1:])]))
    records["x"] = array
    return records["x"]


LAYOUTS = {
    "plain": lambda a: a,
    "fortran": np.asfortranarray,
    "reversed": lambda a: a[::-1].copy()[::-1],
    "reversed last": lambda a: a[..., ::-1].copy()[..., ::-1],
    "wide rows": lambda a: np.concatenate([a, a], axis=-1)[..., : a.shape[-1]],
    "every second": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "unaligned": unaligned,
    "packed records": odd_row_stride,
    "read-only": lambda a: np.broadcast_to(a, a.shape),
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(map(tuple, a.tolist())),
    "list of arrays": list,
    "subclass": lambda a: a.view(np.memmap),
    "duck": lambda a: Duck(a),
    "longdouble": lambda a: a.astype(np.longdouble),
}


class Duck:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


@pytest.mark.quick
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_any_layout_gives_the_same(layout, which):
    args = [Q, QD, F]
    args[which] = LAYOUTS[layout](args[which])
    result = run(*args)
    assert type(result) is np.ndarray and result.dtype == np.float64
    np.testing.assert_array_equal(result, expected(Q, QD, F))


@settings(max_examples=150, deadline=None)
@given(st.data(), hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=4, min_side=0))
def test_broadcasts_as_numpy_does(data, shapes):
    dtypes = data.draw(
        st.lists(st.sampled_from(["f4", "f8", ">f4", ">f8", "i4", "?", "u2", "f2"]), min_size=3, max_size=3)
    )
    layouts = data.draw(
        st.lists(st.sampled_from(["plain", "fortran", "unaligned", "wide rows"]), min_size=3, max_size=3)
    )
    args = []
    for own, core, dtype, layout in zip(shapes.input_shapes, [(6,), (6,), (2, 6)], dtypes, layouts, strict=True):
        args.append(LAYOUTS[layout](RNG.integers(0, 9, own + core).astype(dtype)))
    before = [a.copy() for a in args]
    common = np.result_type(*args)
    common = np.dtype("f4") if common in (np.dtype("f4"), np.dtype("f2")) else np.dtype("f8")
    result = run(*args)
    assert result.shape == (*np.broadcast_shapes(*shapes.input_shapes), 6) == (*shapes.result_shape, 6)
    assert result.dtype == common
    np.testing.assert_array_equal(result, expected(*args, dtype=common))
    out = np.full(result.shape, 7, common)
    assert run(*args, out=out) is out
    np.testing.assert_array_equal(out, result)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_input_for_all_samples_is_not_repeated():
    seen = []

    def look(inputs, outputs):
        check(inputs, outputs)
        seen.append([a.shape for a in inputs])

    call(SIGNATURE, lambda dtype: look, (Q, QD[0], F[None, :1]))
    call(SIGNATURE, lambda dtype: look, (Q[0], QD[0], F[0]))
    assert seen == [[(5, 6), (1, 6), (1, 12)], [(1, 6), (1, 6), (1, 12)]]


@pytest.mark.parametrize("rows", [lambda a: a, lambda a: a[:, :6], lambda a: np.broadcast_to(a[0, :6], (5, 6))])
def test_rows_that_kernels_can_read_are_not_copied(rows):
    wide = RNG.normal(size=(5, 6 if rows(np.zeros((5, 6))).base is None else 12))
    seen = []
    call(SIGNATURE, lambda dtype: lambda i, o: seen.extend(i), (rows(wide), QD, F))
    assert np.shares_memory(seen[0], wide)


def test_axes_of_length_one_with_odd_strides():
    scalar = Signature("f", (Argument("q", (1,)),), (Argument("x", (1,)),))

    def copy(inputs, outputs):
        check(inputs, outputs)
        outputs[0][...] = inputs[0]

    column = np.asfortranarray(RNG.normal(size=(5, 4)))[:, 2:3]
    assert column.flags.c_contiguous and column.strides[1] != 8
    for q in (
        column,
        column[:1],
        column[0],
        np.arange(4.0)[::3][:1],
        np.lib.stride_tricks.as_strided(column, strides=(8, 3)),
    ):
        out = np.empty((len(q), 5, 2))[:, ::5, 0] if q.ndim == 2 else np.empty(3)[::3]
        np.testing.assert_array_equal(call(scalar, lambda dtype: copy, (q,)), q)
        assert call(scalar, lambda dtype: copy, (q,), out=out) is out
        np.testing.assert_array_equal(out, q)
    row = np.lib.stride_tricks.as_strided(Q, (1, 6), (3, 8))
    for qd in (QD[:1], QD[:1].tolist(), QD):
        np.testing.assert_array_equal(run(row, qd, F[:1]), expected(row, qd, F[:1]))


@pytest.mark.quick
def test_matrix_is_a_batch():
    row = np.arange(6.0)[None].view(np.matrix)
    assert run(row, QD[0], F[0]).shape == (1, 6)


def test_scalars_for_scalar_arguments():
    for m in (2, 2.0, True, np.float64(2), np.int8(2), np.array(2.0), [2.0, 3.0]):
        a, s = run_several([1, 2, 3], m)
        np.testing.assert_array_equal(s, np.asarray(m, float))
        assert type(s) is np.ndarray and a.shape == (*s.shape, 3, 3)
    np.testing.assert_array_equal(run_several([[1, 2, 3]] * 4, 2.5)[1], [2.5] * 4)


@pytest.mark.quick
@pytest.mark.parametrize("empty", [(0,), (0, 3), (4, 0)])
def test_empty_batches_run_nothing(empty):
    def never(inputs, outputs):
        raise AssertionError

    for q in (np.ones((*empty, 6)), np.ones((*empty, 6), np.int32)):
        result = call(SIGNATURE, lambda dtype: never, (q, QD[0], F[0]))
        assert result.shape == (*empty, 6) and result.dtype == np.float64
    out = np.empty((*empty, 6))
    assert call(SIGNATURE, lambda dtype: never, (q, q, F[0]), out=out) is out


def test_sizes_of_zero():
    signature = Signature("f", (Argument("q", (0,)), Argument("p", (2,))), (Argument("x", (2,)), Argument("M", (0, 0))))

    def copy(inputs, outputs):
        check(inputs, outputs)
        outputs[0][...] = inputs[1]

    for q in ([], np.empty(0), np.empty((3, 0)), np.empty((3, 0), "f4"), np.empty((0, 0)).T):
        x, m = call(signature, lambda dtype: copy, (q, np.ones((3, 2)) if np.ndim(q) == 2 and len(q) else [1, 1]))
        assert (x == 1).all() and m.shape == (*x.shape[:-1], 0, 0)
    nothing = Signature("f", (Argument("q", (0,)),), (Argument("x", (0,)),))
    assert call(nothing, lambda dtype: copy, (np.empty((2**40, 0)),)).shape == (2**40, 0)  # and takes no time
    no_inputs = Signature("f", (), (Argument("x", (2,)),))
    assert call(no_inputs, lambda dtype: lambda i, o: o[0].fill(3), ()).tolist() == [3, 3]


# ---- dtype


@pytest.mark.parametrize(
    ("args", "dtype"),
    [
        (("f4", "f4", "f4"), "f4"),
        (("f4", "f4", "f8"), "f8"),
        (("f2", "f4", "f2"), "f4"),
        (("f2", "f2", "f2"), "f4"),
        (("f4", "i8", "f4"), "f8"),
        (("f4", "i2", "?"), "f4"),
        (("i2", "i2", "i2"), "f8"),
        (("?", "?", "?"), "f8"),
        (("f4", ">f4", "f4"), "f4"),
        (("f4", "f4", "g"), "f8"),
        (("f4", "f4", "list"), "f8"),
    ],
)
def test_dtype_follows_result_type(args, dtype):
    values = [(a > 0).tolist() if d == "list" else (a > 0).astype(d) for a, d in zip((Q, QD, F), args, strict=True)]
    values[2] = (F > 0).astype(float).tolist() if args[2] == "list" else values[2]
    asked = []
    result = call(SIGNATURE, lambda d: asked.append(d) or toy, values)
    assert result.dtype == np.dtype(dtype) and asked == [np.dtype(dtype)]
    np.testing.assert_array_equal(result, expected(Q > 0, QD > 0, F > 0))


def test_python_numbers_follow_the_arrays():
    q = np.ones(3, np.float32)
    assert run_several(q, 0.5)[0].dtype == np.float32
    assert run_several(q, 3)[0].dtype == np.float32
    assert run_several(q, np.float64(0.5))[0].dtype == np.float64
    assert run_several([1, 2, 3], 0.5)[0].dtype == np.float64
    assert run_several(np.ones(3, "u1"), 2**63)[1] == 2.0**63


@pytest.mark.parametrize("dtype", ["float32", np.float32, "f4", np.dtype("float64"), float])
def test_dtype_can_be_forced(dtype):
    result = run(Q, QD.astype("f4"), F, dtype=dtype)
    assert result.dtype == np.dtype(dtype)
    np.testing.assert_allclose(result, expected(Q, QD, F), rtol=1e-5)
    assert run(Q, QD, F, dtype=dtype, out=np.empty((5, 6), dtype)).dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "int", complex, "g", ">f8", object, "nonsense", 7])
def test_dtype_refused(dtype):
    with pytest.raises(ArgumentError, match=r"inverse_dynamics: dtype is .* expected"):
        run(Q, QD, F, dtype=dtype)


def test_overflow_in_conversion_is_silent_infinity():
    with np.errstate(all="raise"):
        assert np.isinf(run(np.full(6, 1e300), QD[0] * 0, F[0] * 0, dtype="float32")).all()


# ---- what is refused

WRONG = {
    "short": (
        [0.0] * 5,
        "q has 5 entries in its last axis (shape (5,)), expected 6 (one per coordinate), pass",
    ),
    "long": (
        np.zeros((2, 7)),
        "q has 7 entries in its last axis (shape (2, 7)), expected 6 (one per coordinate)",
    ),
    "transposed": (np.zeros((6, 5)), "q has 5 entries in its last axis (shape (6, 5)), expected 6"),
    "number": (3.0, "q has shape (), expected (..., 6)"),
    "empty": ([], "q has 0 entries"),
    "none": (None, "q is None, expected numbers of shape (..., 6)"),
    "complex": (np.zeros(6, complex), "q holds complex numbers (dtype complex128)"),
    "complex list": ([1j] * 6, "complex numbers"),
    "objects": (np.zeros(6, object), "q holds Python objects"),
    "dict": ({"q": 1}, "Python objects"),
    "generator": ((x for x in range(6)), "Python objects"),
    "huge int": ([2**70] * 6, "Python objects"),
    "text": (["1"] * 6, "text"),
    "string": ("123456", "text"),
    "bytes": (b"123456", "text"),
    "dates": (np.zeros(6, "M8[s]"), "dates"),
    "durations": (np.zeros(6, "m8[s]"), "time differences"),
    "records": (np.zeros(6, "f8,f8"), "records"),
    "None inside": ([None] * 6, "Python objects"),
    "ragged": (
        [[1, 2, 3, 4, 5, 6], [1, 2]],
        "q (a list) does not make an array of numbers, expected shape (..., 6)",
    ),
    "very long": (range(2**62), "does not make an array"),
}


@pytest.mark.quick
@pytest.mark.parametrize("case", WRONG)
def test_wrong_argument(case):
    value, message = WRONG[case]
    with pytest.raises(ArgumentError) as error:
        run(value, QD, F)
    text = str(error.value)
    assert text.startswith("inverse_dynamics: ") and message in text
    assert text.endswith(".") and "\n" not in text and ". " not in text.replace("...", "")


def test_wrong_matrix_argument():
    for f in (np.zeros((3, 6)), np.zeros(6), 1.0, np.zeros((6, 2))):
        with pytest.raises(ArgumentError, match=r"f_ext has shape .*, expected \(\.\.\., 2, 6\), pass"):
            run(Q, QD, f)


def test_endless_list():
    endless = []
    endless.append(endless)
    with pytest.raises(ArgumentError):
        run(endless, QD, F)


def test_number_of_arguments():
    with pytest.raises(ArgumentError, match=r"got 1 arguments, expected 3 \(q, qd, f_ext\), pass qd, f_ext too\."):
        run(Q)
    with pytest.raises(ArgumentError, match=r"got 5 arguments, expected 3 \(q, qd, f_ext\), leave out the last 2\."):
        run(Q, QD, F, F, F)
    with pytest.raises(ArgumentError, match="no output"):
        Signature("f", (), ())


def test_batches_that_do_not_broadcast():
    with pytest.raises(ArgumentError, match=r"\(q \(5,\), qd \(4,\), f_ext \(2, 5\)\) do not broadcast"):
        run(Q, QD[:4], np.zeros((2, 5, 2, 6)))
    with pytest.raises(ArgumentError, match="do not broadcast"):
        run(Q[:0], QD[:4], F[0])


@pytest.mark.parametrize("length", [2**20, 2**40, 2**57])
def test_more_than_memory_holds(length):
    def one_of(shape):
        return np.broadcast_to(np.zeros(()), shape)

    with pytest.raises(ArgumentError, match="fits into memory"):
        run(one_of((length, 1, 1, 6)), one_of((2**30, 1, 6)), F)


def test_more_axes_than_numpy_has():
    deep = np.zeros((1,) * 63 + (3,))
    with pytest.raises(ArgumentError, match="number of axes"):
        run_several(deep, 1.0)


# ---- out


@pytest.mark.quick
def test_out_is_returned():
    out = np.empty((5, 6))
    assert run(Q, QD, F, out=out) is out
    np.testing.assert_array_equal(out, expected(Q, QD, F))


OUTS = {
    "fortran": lambda shape: np.empty(shape, order="F"),
    "reversed": lambda shape: np.empty(shape)[::-1],
    "every second": lambda shape: np.empty((*shape[:-1], 2 * shape[-1]))[..., ::2],
    "wide rows": lambda shape: np.empty((*shape[:-1], 2 * shape[-1]))[..., : shape[-1]],
    "unaligned": lambda shape: unaligned(np.empty(shape)),
    "packed records": lambda shape: odd_row_stride(np.empty(shape)),
    "memmap": lambda shape: np.empty(shape).view(np.memmap),
    "transposed": lambda shape: np.empty(shape[::-1]).T,
}


@pytest.mark.quick
@pytest.mark.parametrize("layout", OUTS)
@pytest.mark.parametrize("lead", [(), (1,), (5,), (2, 5)])
def test_out_of_any_layout(layout, lead):
    out = OUTS[layout]((*lead, 6)) if lead or layout != "packed records" else np.empty(6)
    q = np.broadcast_to(Q[0] if lead in ((), (1,)) else Q, (*lead, 6))
    assert run(q, QD[0], F[0], out=out) is out
    np.testing.assert_array_equal(out, expected(q, QD[0], F[0]))


def test_wide_out_is_written_without_a_copy():
    wide = np.full((5, 12), 7.0)
    seen = []
    call(SIGNATURE, lambda dtype: lambda i, o: seen.extend(o), (Q, QD, F), out=wide[:, 3:9])
    assert np.shares_memory(seen[0], wide)
    run(Q, QD, F, out=wide[:, 3:9])
    assert (wide[:, :3] == 7).all() and (wide[:, 9:] == 7).all()


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.booleans())
def test_out_may_overlap_the_arguments(at_q, at_qd, at_out, interleaved):
    pool = RNG.normal(size=(60, 8) if interleaved else 80)

    def view(start):
        return (
            pool[start % 7 : start % 7 + 4, 1 + start % 2 : 7 + start % 2]
            if interleaved
            else pool[start : start + 24].reshape(4, 6)
        )

    q, qd, out = view(at_q), view(at_qd), view(at_out)
    wanted = expected(q, qd, F[:4])
    run(q, qd, F[:4], out=out)
    np.testing.assert_array_equal(out, wanted)


def test_columns_of_one_state_do_not_overlap():
    state = RNG.normal(size=(5, 12))
    wanted = expected(state[:, :6], QD, F)
    seen = []

    def look(inputs, outputs):
        toy(inputs, outputs)
        seen.extend(outputs)

    call(SIGNATURE, lambda dtype: look, (state[:, :6], QD, F), out=state[:, 6:])
    np.testing.assert_array_equal(state[:, 6:], wanted)
    assert np.shares_memory(seen[0], state)


def frozen(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (
            np.empty((5, 5)),
            r"float64 array of shape \(5, 5\), expected a float64 array of shape \(5, 6\), pass np.empty",
        ),
        (np.empty((1, 5, 6)), "shape"),
        (np.empty(30), "shape"),
        (np.empty((5, 6), "f4"), "float32 array"),
        (np.empty((5, 6), ">f8"), ">f8 array"),
        (np.empty((5, 6), int), "int64 array"),
        (np.empty((5, 6), object), "object array"),
        (frozen(np.empty((5, 6))), "read-only"),
        ([[0.0] * 6] * 5, "out is a list"),
        ((np.empty((5, 6)),), "out is a tuple"),
        (3, "out is a int"),
        (np.lib.stride_tricks.as_strided(np.empty(6), (5, 6), (0, 8)), "share memory with one another"),
        (
            np.lib.stride_tricks.sliding_window_view(np.empty(10), 6, writeable=True),
            "share memory with one another",
        ),
    ],
)
def test_out_refused(out, message):
    with pytest.raises(ArgumentError, match="inverse_dynamics: out .*" + message.removeprefix("out ")):
        run(Q, QD, F, out=out)


def test_several_outs():
    q, m = RNG.normal(size=(4, 3)), RNG.normal(size=4)
    a, s = run_several(q, m)
    outs = np.empty((4, 3, 3), order="F"), np.empty(8)[::2]
    assert run_several(q, m, out=outs) is outs
    np.testing.assert_array_equal(outs[0], a)
    np.testing.assert_array_equal(outs[1], s)
    pool = np.empty(80)
    for bad, message in [
        (a, "out is a ndarray, expected a tuple of 2 arrays, pass"),
        ((a,), "out is 1 arrays"),
        ((a, None), "out for s is a NoneType"),
        ((pool[:36].reshape(4, 3, 3), pool[35:39]), "out for s shares memory with another"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            run_several(q, m, out=bad)
    interleaved = np.empty((4, 10))
    outs = interleaved[:, :9].reshape(4, 3, 3), interleaved[:, 9]
    run_several(q, m, out=(np.ascontiguousarray(outs[0]), outs[1]))
    np.testing.assert_array_equal(interleaved[:, 9], m)


def test_result_can_be_made_by_the_signature():
    signature = Signature(
        "f", SEVERAL.inputs, SEVERAL.outputs, result=lambda arrays: dict(zip("As", arrays, strict=True))
    )
    assert set(call(signature, lambda dtype: toy_several, ([1, 2, 3], 1.0))) == {"A", "s"}


def test_a_failing_kernel_leaves_copied_outs_alone():
    def fail(inputs, outputs):
        outputs[0][...] = 3
        raise RuntimeError("no")

    out = np.zeros((5, 12))[:, ::2]
    with pytest.raises(RuntimeError):
        call(SIGNATURE, lambda dtype: fail, (Q, QD, F), out=out)
    assert not out.any()


def test_run_is_used():
    seen = []

    def runner(kernel, inputs, outputs):
        seen.append(kernel)
        kernel(inputs, outputs)

    np.testing.assert_array_equal(run(Q, QD, F, run=runner), expected(Q, QD, F))
    assert seen == [toy]


# ---- random abuse, speed


VALUES = st.one_of(
    st.none(),
    st.floats(),
    st.text(max_size=3),
    st.recursive(st.integers(-3, 3) | st.floats() | st.none(), lambda x: st.lists(x, max_size=7), max_leaves=20),
    hnp.arrays(
        st.one_of(hnp.scalar_dtypes(), hnp.array_dtypes(max_size=2)),
        st.one_of(
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=7),
            st.sampled_from([(6,), (2, 6), (3, 2, 6)]),
        ),
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(VALUES, max_size=4), st.one_of(st.none(), VALUES), st.sampled_from([None, "f4", "f8", "i4"]))
@pytest.mark.slow
def test_anything_is_an_error_or_an_answer(args, out, dtype):
    def kernel(inputs, outputs):
        check(inputs, outputs)
        outputs[0][...] = 0

    try:
        result = call(SIGNATURE, lambda d: kernel, args, out=out, dtype=dtype)
    except ArgumentError as error:
        assert str(error).startswith("inverse_dynamics: ")
    else:
        batches = (np.shape(a)[:-n] for a, n in zip(args, (1, 1, 2), strict=True))
        assert result.shape == (*np.broadcast_shapes(*batches), 6)


@pytest.mark.slow
def test_no_leak():
    q, out = Q[0].tolist(), np.empty(6)

    def calls():
        for _ in range(200):
            run(Q, QD, F)
            run(q, QD[0], F[0], out=out)
            with pytest.raises(ArgumentError):
                run(Q, QD[:4], F)

    calls()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        calls()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()
