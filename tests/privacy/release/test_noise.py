"""Noise: every draw its own secret stream, an encoding without collisions, and samplers checked
against plain formulas."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from mpmath import cos, log, mpf, pi, sin, sqrt, workdps

from dpladder.errors import BadInput, Refused
from dpladder.privacy.ledger.state import Terms
from dpladder.privacy.release import noise
from dpladder.privacy.release.noise import BLOCK, ResearchNoise, SecretNoise, encode

KEY = bytes(range(32))
SOURCE = SecretNoise(KEY, "query", "nonce")
IDS = np.random.default_rng(7).integers(0, 256, (5_000, 16), dtype=np.uint8)

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
)
plain = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


def decode(data: bytes) -> Any:
    value, rest = _decode(data)
    assert rest == b""
    return value


def _decode(data: bytes) -> tuple[Any, bytes]:
    head, _, rest = data.partition(b":")
    tag, length = chr(head[0]), int(head[1:])
    body, rest = rest[:length], rest[length:]
    if tag in "lm":
        items = []
        while body:
            item, body = _decode(body)
            items.append(item)
        return (dict(items) if tag == "m" else items), rest
    read = {"n": eval, "i": int, "f": float.fromhex, "s": bytes.decode, "b": bytes}
    return read[tag](body if tag in "sb" else body.decode()), rest


@pytest.mark.ci
@given(plain)
def test_an_encoding_can_be_read_back_so_no_two_values_share_one(value: Any) -> None:
    back = decode(encode(value))
    assert back == value
    assert str(_types(back)) == str(_types(value))


def _types(value: Any) -> Any:
    match value:
        case list():
            return [_types(item) for item in value]
        case dict():
            return {key: _types(value[key]) for key in sorted(value)}
        case float():
            return value.hex()  # tells -0.0 from 0.0
        case _:
            return type(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["ab", "c"], ["a", "bc"]),
        (["a"], "a"),
        (1, True),
        (1, 1.0),
        ("1", 1),
        (0.1, math.nextafter(0.1, 1.0)),
        ([[], []], [[[]]]),
        (b"a", "a"),
    ],
)
def test_values_that_look_alike_are_told_apart(one: Any, other: Any) -> None:
    assert encode(one) != encode(other)


def test_the_order_of_keys_does_not_matter() -> None:
    assert encode({"a": 1, "b": [2]}) == encode({"b": (2,), "a": 1})


@pytest.mark.parametrize("value", [{1, 2}, np.int64(3), np.zeros(2), object()])
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(BadInput, match="plain values"):
        encode(value)


def test_streams_differ_in_everything_that_names_a_draw() -> None:
    others = [
        dataclasses.replace(SOURCE, query="other"),
        dataclasses.replace(SOURCE, nonce="other"),
        dataclasses.replace(SOURCE, key=bytes(32)),
    ]
    streams = [source.stream("noise", 0) for source in (SOURCE, *others)]
    streams += [SOURCE.stream("noise", 1), SOURCE.stream("nois", 0), SOURCE.stream("noise0", 0)]
    assert len(set(streams)) == len(streams)
    assert SOURCE.stream("noise", 0) == streams[0]


def test_a_printed_source_shows_no_secret() -> None:
    assert "nonce" not in repr(SOURCE)
    assert repr(KEY) not in repr(SOURCE)


@pytest.mark.parametrize("sample", [noise.gaussian, noise.laplace, noise.uniform])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 2), (BLOCK - 1,), (BLOCK + 1,)])
def test_samples_have_the_shape_asked_for(sample: Any, shape: tuple[int, ...]) -> None:
    values = sample(KEY, shape)
    assert values.shape == shape
    assert values.dtype == np.float64
    assert len(np.unique(values)) == values.size


def keystream(count: int) -> list[int]:
    """The first words of KEY's stream, one at a time."""
    stream = Cipher(algorithms.AES(KEY), modes.CTR(bytes(16))).encryptor().update(bytes(8 * count))
    return [int.from_bytes(stream[8 * i : 8 * i + 8], "little") for i in range(count)]


def unit(word: int) -> mpf:
    return mpf((word >> 11) + 1) / 2**53


def exponential(word: int, places: int) -> mpf:
    """-log V or -log(1 - V), at 60 digits: a bit chooses, V has its leading one after as many zeros
    as `places`."""
    mantissa = 1 + mpf(2 * (word >> 13) + 1) / 2**52
    v = mantissa / mpf(2) ** (2 + 64 - places.bit_length())
    return -log(1 - v) if word & 1 else -log(v)


def test_uniforms_are_53_bits_of_the_keystream() -> None:
    assert noise.uniform(KEY, (100,)).tolist() == [float(unit(word)) for word in keystream(100)]


def test_gaussians_are_within_tau_of_halved_sums_of_four_exact_box_muller_samples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(noise, "BLOCK", 128)
    words = np.reshape(np.array(keystream(12 * 64), object), (12, 64))
    with workdps(60):
        for place, turn in enumerate((cos, sin)):
            drawn = noise.gaussian(KEY, (128,))[64 * place : 64 * (place + 1)]
            for i, z in enumerate(drawn):
                w = [int(word) for word in words[:, i]]
                exact = sum(
                    sqrt(2 * exponential(w[k], w[4 + k])) * turn(2 * pi * unit(w[8 + k]))
                    for k in range(4)
                )
                assert abs(mpf(float(z)) - exact / 2) < mpf(2) ** -48  # of 54 2^-50, at the worst


def test_laplace_is_the_formula_of_two_exponentials_and_two_angles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(noise, "BLOCK", 64)
    words = np.reshape(np.array(keystream(6 * 64), object), (6, 64))
    with workdps(60):
        for i, z in enumerate(noise.laplace(KEY, (64,))):
            w = [int(word) for word in words[:, i]]
            exact = sum(
                exponential(w[k], w[2 + k]) * cos(2 * pi * unit(w[4 + k])) for k in range(2)
            )
            assert abs(mpf(float(z)) - exact) < mpf(2) ** -46


@pytest.mark.parametrize("bits", [0, 1, 2**12, 2**13 - 1, 2**63, 2**64 - 1])
def test_v_is_what_its_bits_say_however_a_float_would_round(bits: int) -> None:
    places = [0, 1, 2, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]
    words = np.full(len(places), bits, np.uint64), np.array(places, np.uint64)
    mantissa = 1 + Fraction(2 * (bits >> 13) + 1, 2**52)
    assert [Fraction(v) for v in noise._normal_tail_uniforms(*words).tolist()] == [
        mantissa / 2 ** (66 - word.bit_length()) for word in places
    ]


@pytest.mark.parametrize(("sample", "rows"), [(noise.gaussian, 12), (noise.laplace, 6)])
def test_noise_reaches_as_far_out_as_64_bits_of_places_say(
    monkeypatch: pytest.MonkeyPatch, sample: Any, rows: int
) -> None:
    """A stream that puts V's leading one behind k zeros, for every k. All angles are 2^53 / 2^53:
    cosines are 1."""
    of_each = rows // 3
    for zeros in range(64):
        words = [2] * of_each + [1 << (63 - zeros)] * of_each + [2**64 - 1] * of_each

        class Chosen:
            def __init__(self, *_: object) -> None: ...

            def encryptor(self) -> Chosen:
                return self

            def update(self, data: bytes, words: list[int] = words) -> bytes:
                return b"".join(word.to_bytes(8, "little") for word in words)

        monkeypatch.setattr(noise, "Cipher", Chosen)
        far = exponential(2, words[of_each])
        ideal = of_each * sqrt(2 * far) / 2 if rows == 12 else of_each * far
        assert sample(KEY, (1,))[0] == pytest.approx(float(ideal), rel=1e-12)


@pytest.mark.parametrize(
    ("sample", "rows", "most", "farthest"),
    [(noise.gaussian, 12, 54, 64), (noise.laplace, 6, 178, 48)],
)
def test_far_out_samples_are_as_near_to_exact_ones_as_the_theorem_of_the_grid_needs(
    monkeypatch: pytest.MonkeyPatch, sample: Any, rows: int, most: int, farthest: int
) -> None:
    """Exponentials of every size up to 35, or all there are, at angles all around the circle."""
    of_each, rng = rows // 3, np.random.default_rng(0)
    for zeros in range(farthest):
        chosen = rng.integers(0, 2**64, rows, np.uint64)
        chosen[:of_each] &= ~np.uint64(1)  # V itself, which alone is far out
        chosen[of_each : 2 * of_each] = 1 << (63 - zeros)
        words = [int(word) for word in chosen]
        monkeypatch.setattr(noise, "_fill", lambda *given, w=chosen, **_: given[2](w[:, None]))
        with workdps(60):
            sizes = [exponential(words[k], words[of_each + k]) for k in range(of_each)]
            angles = [2 * pi * (unit(word) - mpf(2) ** -54) for word in words[2 * of_each :]]
            for drawn, turn in zip(sample(KEY, ()), (cos, sin), strict=False):
                exact = sum(
                    sqrt(2 * size) * turn(angle) / 2 if rows == 12 else size * turn(angle)
                    for size, angle in zip(sizes, angles, strict=True)
                )
                assert abs(mpf(float(drawn)) - exact) < most * mpf(2) ** -50


def test_cosine_and_sine_are_exact_where_the_tangent_between_them_is_largest() -> None:
    """And all around the circle: within what noise.py says of its rounding, and 1 u of a
    tangent."""
    near = math.pi * (1.0 + np.r_[0.0, 2.0 ** -np.arange(1.0, 53.0), -(2.0 ** -np.arange(1, 53))])
    angles = np.r_[near, 2.0 * math.pi * np.random.default_rng(3).uniform(size=200), math.tau]
    u = mpf(2) ** -50
    with workdps(60):
        for angle, c, s in zip(angles, *noise._cosine_and_sine(angles), strict=True):
            x, y = cos(mpf(float(angle))), sin(mpf(float(angle)))
            assert abs(mpf(float(c)) - x) < (1.07 * y * y + 0.38 * abs(x)) * u
            assert abs(mpf(float(s)) - y) < (abs(x) + 0.38) * abs(y) * u


@pytest.mark.parametrize("byte", [0x00, 0xFF])
def test_the_ends_of_the_keystream_give_finite_noise(
    monkeypatch: pytest.MonkeyPatch, byte: int
) -> None:
    class Constant:
        def __init__(self, *_: object) -> None: ...

        def encryptor(self) -> Constant:
            return self

        def update(self, data: bytes) -> bytes:
            return bytes([byte]) * len(data)

    monkeypatch.setattr(noise, "Cipher", Constant)
    for sample in (noise.gaussian, noise.laplace, noise.uniform):
        assert np.isfinite(sample(KEY, (10,))).all()
    assert 0 < noise.uniform(KEY, (1,))[0] <= 1


def test_who_is_sampled_depends_on_the_id_alone() -> None:
    order = np.random.default_rng(1).permutation(len(IDS))
    chosen = noise.mask(KEY, 0.3, IDS)
    np.testing.assert_array_equal(noise.mask(KEY, 0.3, IDS[order]), chosen[order])
    np.testing.assert_array_equal(noise.mask(KEY, 0.3, IDS[::7]), chosen[::7])
    np.testing.assert_array_equal(
        noise.mask(KEY, 0.3, np.repeat(IDS, 2, axis=0)), np.repeat(chosen, 2)
    )


def test_masks_meet_their_probability_and_grow_with_it() -> None:
    assert noise.mask(KEY, 1.0, IDS).all()
    assert not noise.mask(KEY, 2.0**-60, IDS).any()
    few, many = noise.mask(KEY, 0.1, IDS), noise.mask(KEY, 0.4, IDS)
    assert not (few & ~many).any()
    assert abs(many.mean() - 0.4) < 6 * math.sqrt(0.24 / len(IDS))


def test_masks_of_two_draws_differ() -> None:
    assert (noise.mask(KEY, 0.5, IDS) != noise.mask(bytes(32), 0.5, IDS)).mean() > 0.4


@pytest.mark.parametrize("ids", [IDS[:37, :8], IDS[:37].astype(np.int64), IDS[:37].ravel()])
def test_ids_of_another_form_are_refused_without_saying_how_many(ids: Any) -> None:
    with pytest.raises(BadInput, match="16 bytes") as refusal:
        noise.mask(KEY, 0.5, ids)
    assert "37" not in str(refusal.value)
    assert "592" not in str(refusal.value)


def terms(mode: Any) -> Terms:
    return Terms("toy", "add_remove", "record", 1, 1e-5, "hash", None, mode)


def test_seeded_noise_cannot_be_made_for_a_release() -> None:
    with pytest.raises(Refused, match="research"):
        ResearchNoise(terms("release"), "asked", 0)


def test_seeded_noise_repeats_and_follows_its_seed_and_job() -> None:
    make = ResearchNoise(terms("research"), "asked", 0).stream
    assert make("noise", 3) == ResearchNoise(terms("research"), "asked", 0).stream("noise", 3)
    assert make("noise", 3) != ResearchNoise(terms("research"), "asked", 1).stream("noise", 3)
    assert make("noise", 3) != ResearchNoise(terms("research"), "other", 0).stream("noise", 3)
