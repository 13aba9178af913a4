"""Lines of NumPy for test_library.py. A name is an operand; `known` lines need sizes that are known."""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

OPERANDS = {
    "a": np.linspace(-2.05, 3.05, 12).reshape(3, 4)[:, [2, 0, 3, 1]],
    "b": 0.95 * np.cos(np.arange(12.0)).reshape(3, 4),
    "c": np.sin(np.arange(24.0)).reshape(2, 3, 4),
    "d": np.cos(np.arange(24.0)).reshape(2, 4, 3),
    "v": np.array([0.3, -1.2, 2.5, 0.7]),
    "w": np.array([1.5, 2.5, -0.5]),
    "s": np.float64(0.75),
    "f": np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4),
    "i": np.array([[3, -7, 2, 0], [5, 1, -4, 8], [2, 2, 9, -1]]),
    "u": np.array([[3, 7, 2, 0], [5, 1, 4, 8], [2, 2, 9, 1]], dtype=np.uint8),
    "j": np.array([2, 0, 1, 2]),
    "k": np.int64(2),
    "p": np.array([[True, False, True, True], [False] * 4, [True] * 4]),
    "z": np.exp(1j * np.arange(12.0)).reshape(3, 4),
    "m": np.array([[1.0, np.nan, 2.0, np.inf], [-np.inf, 0.0, -0.0, 4.0], [np.nan, 1.0, 3.0, -2.0]]),
    "q": np.array([0.1, 0.25, 0.9]),
    "h": np.cos(np.arange(9.0)).reshape(3, 3),
    "t": np.array([-1.0, 0.0, 0.5, 2.0, 4.0]),
}

ANY_SIZE = """
np.add(a, b); np.add(a, 1); np.add(i, 1.5); np.add(f, 1); np.add(f, a); np.add(u, i); np.add(p, p)
np.add(z, 1); np.subtract(a, v); np.multiply(c, a); np.divide(i, 2); np.true_divide(u, u)
np.floor_divide(i, 3); np.mod(i, 3); np.remainder(a, 0.7); np.fmod(a, 0.7); np.divmod(i, 4); np.negative(a)
np.positive(a); np.absolute(z); np.abs(i); np.fabs(i); np.power(a, 2); np.power(a, 3.0)
np.power(np.abs(a), 0.5); np.power(2, u); np.power(i, 2); np.power(np.abs(a), b); np.power(np.abs(a), -1)
np.float_power(u, 2); np.square(a); np.square(i); np.reciprocal(v); np.sqrt(np.abs(a)); np.cbrt(a); np.exp(a)
np.exp2(a); np.expm1(a); np.log(np.abs(a)); np.log1p(np.abs(a)); np.log2(np.abs(a)); np.log10(np.abs(a))
np.exp(i); np.sin(u); np.sin(f); np.cos(a); np.tan(b); np.arcsin(b); np.arccos(b); np.arctan(a); np.sinh(a)
np.cosh(a); np.tanh(a); np.arcsinh(a); np.arccosh(np.add(np.abs(a), 1.5)); np.arctanh(b); np.hypot(a, b)
np.arctan2(a, b); np.logaddexp(a, b); np.logaddexp2(a, b); np.maximum(a, b); np.minimum(i, 1); np.fmax(m, a)
np.fmin(m, a); np.heaviside(a, 0.5); np.sign(a); np.sign(i); np.copysign(a, b); np.nextafter(a, b)
np.signbit(m); np.floor(a); np.ceil(a); np.trunc(a); np.fix(a); np.rint(a); np.floor(i); np.round(a, 2)
np.around(a); np.round(i); np.modf(a); np.ldexp(a, i); np.spacing(a);
np.frexp(a)[0]; np.isnan(m); np.isinf(m); np.isfinite(m)
np.isfinite(i); np.isnan(i); np.isposinf(m); np.isneginf(m); np.isreal(z); np.iscomplex(z); np.real(z)
np.imag(z); np.imag(a); np.conj(z); np.conjugate(z); np.angle(z); np.angle(z, deg=True); np.deg2rad(a)
np.rad2deg(a); np.degrees(a); np.radians(a); np.sinc(a); np.nan_to_num(m)
np.nan_to_num(m, nan=1.0, posinf=2.0, neginf=3.0); np.clip(a, -0.5, 1.0); np.clip(i, 0, 3)
np.clip(a, None, b); np.where(p, a, b); np.where(p, a, 0); np.where(a, 1, 0); np.where(p, i, 0.5)
np.select([np.greater(a, 1), np.less(a, 0)], [a, b], 7.0); np.piecewise(a, [np.greater(a, 0)], [2.0, -1.0])
np.equal(a, b); np.not_equal(i, 2); np.less(a, b); np.less_equal(a, 0); np.greater(i, 1.5)
np.greater_equal(a, b); np.logical_and(a, p); np.logical_or(p, i); np.logical_xor(p, i); np.logical_not(a)
np.bitwise_and(i, 3); np.bitwise_or(u, 4); np.bitwise_xor(i, i); np.invert(p); np.invert(i)
np.left_shift(i, 2); np.right_shift(i, 1); np.bitwise_count(i); np.polyval([1.0, 2.0, 3.0], a); np.pow(a, 2)
np.reshape(a, (4, 3)); np.reshape(a, -1); np.ravel(a); np.transpose(c); np.transpose(c, (1, 0, 2))
np.swapaxes(c, 0, 2); np.permute_dims(c, (2, 0, 1)); np.matrix_transpose(c); np.moveaxis(c, 0, -1)
np.moveaxis(c, (0, 1), (2, 0)); np.rollaxis(c, 2); np.rollaxis(c, 0, 3); np.expand_dims(a, 1)
np.expand_dims(a, (0, -1)); np.squeeze(np.expand_dims(a, 0)); np.broadcast_arrays(a, v); np.atleast_1d(s)
np.atleast_2d(v); np.atleast_3d(v); np.atleast_3d(a); np.concatenate([a, b]); np.concatenate((a, f), axis=1)
np.concatenate([a, b], axis=None); np.concat([v, w]); np.stack([a, b]); np.stack([v, v], axis=-1)
np.vstack([v, v]); np.hstack([a, b]); np.hstack([v, w]); np.dstack([a, b]); np.column_stack([v, v])
np.append(a, b); np.append(a, b, axis=0); np.block([[a, b], [b, a]]); np.split(a, 2, axis=1)
np.vsplit(np.vstack([a, a]), 2); np.hsplit(a, 2); np.dsplit(c, 2); np.split(a, 1); np.flip(a); np.flip(a, 1)
np.fliplr(a); np.flipud(a); np.rot90(a); np.rot90(a, 2); np.rot90(a, -1); np.roll(a, 2)
np.roll(a, -1, axis=1); np.roll(a, (1, 2), axis=(0, 1)); np.repeat(a, 3); np.repeat(a, 2, axis=1)
np.tile(v, 3); np.tile(a, (2, 1)); np.tile(v, (2, 2)); np.pad(a, 1)
np.pad(a, ((0, 2), (1, 0)), constant_values=5.0); np.pad(a, 2, mode="edge"); np.pad(v, (2, 1), mode="wrap")
np.pad(v, 2, mode="reflect"); np.pad(v, 2, mode="symmetric"); np.zeros((2, 3)); np.ones(4); np.empty((0, 2))
np.ndarray((0, 3), np.float32)
np.full((2, 2), 7); np.full(3, s); np.zeros_like(a); np.ones_like(i); np.full_like(a, 2); np.full_like(i, 2.7)
np.empty_like(np.zeros((0, 3))); np.zeros(3, dtype=np.int32); np.array([1.0, 2.0]); np.array([s, s])
np.array([[s, 1], [2, s]]); np.asarray(a); np.array(a, dtype=np.float32); np.ascontiguousarray(a)
np.asanyarray(a); np.asfortranarray(a); np.copy(a); np.astype(a, np.int64); np.array(3, ndmin=2); np.arange(5)
np.arange(1.0, 2.0, 0.25); np.arange(10, 0, -3); np.arange(3, dtype=np.float32); np.arange(2, 7)
np.linspace(0, 1, 5); np.linspace(s, 2.0, 7); np.linspace(0, 1, 4, endpoint=False); np.linspace(v, 1.0, 3)
np.linspace(0, 10, 3, dtype=int); np.linspace(0, 1, 1); np.linspace(0, 1, 5, retstep=True)
np.linspace(v, 2, 3, axis=1); np.logspace(0, 2, 3); np.geomspace(1.0, 8.0, 4); np.eye(3); np.eye(2, 3, 1)
np.identity(2); np.tri(3); np.tri(2, 4, -1); np.tril(a); np.triu(a, 1); np.tril(c, -1); np.diagonal(a)
np.diagonal(c, 0, 1, 2); np.diagonal(a, 1); np.diag(v); np.diag(v, 1); np.diag(v, -2); np.diag(h)
np.diagflat(a); np.meshgrid(v, w); np.meshgrid(v, w, indexing="ij"); np.meshgrid(v, w, sparse=True)
np.indices((2, 3)); np.vander(w, 3); np.vander(w, 3, increasing=True); np.hanning(5); np.hamming(5)
np.blackman(5); np.sum(a); np.sum(a, axis=0); np.sum(c, axis=(0, -1), keepdims=True); np.sum(u); np.sum(p)
np.sum(f); np.sum(a, initial=2.0); np.sum(a, where=p); np.prod(a, axis=1); np.prod(i); np.max(a)
np.max(a, axis=1, keepdims=True); np.min(i, axis=0); np.amax(m, axis=0); np.amin(a); np.max(a, initial=1.0)
np.any(p, axis=1); np.all(p); np.all(a, axis=0); np.argmax(a); np.argmax(m, axis=1)
np.argmin(a, axis=0, keepdims=True); np.ptp(a, axis=0); np.count_nonzero(i); np.count_nonzero(p, axis=1)
np.mean(a); np.mean(i, axis=0); np.mean(f, axis=1, keepdims=True); np.mean(a, where=p); np.average(a, axis=1)
np.average(a, axis=1, weights=v); np.average(a, weights=np.add(b, 2.0)); np.var(a); np.var(a, axis=0, ddof=1)
np.var(z); np.std(a, axis=1); np.std(i); np.nansum(m); np.nanprod(m, axis=0); np.nanmax(m, axis=1)
np.nanmin(m, axis=0); np.nanmean(m, axis=0); np.nanvar(np.where(np.isinf(m), 0.0, m)); np.nanstd(a)
np.linalg.norm(a); np.linalg.norm(v); np.linalg.norm(a, axis=1); np.linalg.norm(v, 1)
np.linalg.norm(v, np.inf); np.linalg.norm(v, 3); np.linalg.norm(a, 1); np.linalg.norm(a, "fro")
np.linalg.norm(a, np.inf); np.linalg.norm(z); np.cumsum(a); np.cumsum(a, axis=1); np.cumsum(u, axis=0)
np.cumprod(a, axis=0); np.nancumsum(m, axis=1); np.isclose(a, b); np.isclose(m, m, equal_nan=True)
np.allclose(a, a); np.array_equal(a, b); np.add.reduce(a); np.multiply.reduce(a, axis=1); np.maximum.reduce(a)
np.minimum.reduce(a); np.add.accumulate(a); np.multiply.accumulate(a, axis=1); np.maximum.accumulate(a)
np.minimum.accumulate(i); np.logical_and.reduce(p); np.logical_or.reduce(p, axis=1); np.subtract.outer(v, w)
np.add.outer(v, a); np.matmul(a, np.transpose(b)); np.matmul(a, v); np.matmul(v, np.transpose(a))
np.matmul(v, v); np.matmul(c, d); np.matmul(a, d); np.matmul(c, v); np.matmul(v, d)
np.matmul(c, np.transpose(a)); np.matmul(i, j); np.matmul(h, np.stack([h, h])); np.dot(a, v); np.dot(v, v)
np.dot(a, 2.0); np.dot(a, d); np.vdot(z, z); np.inner(a, b); np.vecdot(z, z); np.outer(v, w)
np.linalg.outer(v, w); np.tensordot(a, np.transpose(b), 1); np.tensordot(c, d, axes=([0, 2], [0, 1]))
np.tensordot(a, b, axes=2); np.linalg.tensordot(a, b, axes=2); np.linalg.multi_dot([a, np.transpose(b), a])
np.linalg.matrix_power(h, 3); np.linalg.matrix_power(h, 0); np.linalg.matmul(c, d); np.trace(h)
np.trace(c, axis1=1, axis2=2); np.kron(a, b); np.kron(v, w); np.einsum("ij,kj->ik", a, b)
np.einsum("ij->ji", a); np.einsum("ii", h); np.einsum("ii->i", h); np.einsum("ij,j", a, v)
np.einsum("bij,bjk->bik", c, d); np.einsum("...ij,...jk->...ik", c, d); np.einsum("i,j,k->kij", v, w, v)
np.einsum("ij,ij->", a, b); np.einsum("bij,bjk,kl->bil", c, d, h); np.einsum("ij,jk", h, h)
np.einsum(a, [0, 1], v, [1]); np.einsum("ij,ij->i", a, b); np.einsum("ijk->k", c)
np.einsum("...j,j->...", c, v); np.take(v, j); np.take(a, j, axis=0); np.take(a, [0, -1], axis=1)
np.take(a, k, axis=1); np.take(v, i, mode="wrap"); np.take(v, i, mode="clip")
np.take_along_axis(a, np.argsort(a, axis=1), axis=1); np.flatnonzero(i); np.nonzero(p); np.argwhere(i)
np.where(p); np.compress([True, False, True], a, axis=0); np.extract(p, a); np.unique(i)
np.unique(j, return_counts=True); np.unique(i, return_index=True, return_inverse=True); np.unique(m)
np.sort(a); np.sort(a, axis=0); np.sort(i, axis=None); np.argsort(a); np.argsort(i, axis=0, kind="stable")
np.lexsort((v, j)); np.searchsorted(t, a); np.searchsorted(t, s); np.searchsorted(t, a, side="right")
np.digitize(a, t); np.digitize(a, [3.0, 1.0, 0.0]); np.isin(i, [2, 5]); np.quantile(a, 0.3)
np.quantile(a, q, axis=1); np.quantile(a, 0.4, axis=0, keepdims=True); np.percentile(a, 35, axis=1)
np.quantile(a, 0.3, method="lower"); np.quantile(a, q, method="nearest"); np.median(a, axis=0); np.median(a)
np.median(m, axis=0); np.median(c, axis=(0, 2)); np.diff(a); np.diff(a, axis=0); np.diff(v, n=2)
np.diff(v, prepend=0.0); np.diff(p); np.ediff1d(a); np.ediff1d(v, to_begin=0.0); np.gradient(v)
np.gradient(f); np.gradient(f, 0.5); np.heaviside(f, 0.5); np.vecdot(np.abs(f), np.abs(f)); np.vecdot(u, u)
np.gradient(a, 0.5, axis=1); np.gradient(a); np.trapezoid(v); np.trapezoid(a, v)
np.trapezoid(a, dx=0.5, axis=0); np.interp(a, t, np.multiply(t, t)); np.interp(s, t, t)
np.interp(a, t, t, left=-9.0, right=9.0); np.unwrap(np.multiply(a, 4.0)); np.convolve(v, w)
np.convolve(w, v, "same"); np.convolve(v, w, "valid"); np.correlate(v, w); np.correlate(v, w, "full")
np.bincount(j); np.bincount(j, minlength=6); np.bincount(j, weights=v); np.histogram(a, bins=4)
np.histogram(a, bins=t); np.histogram(a, bins=5, range=(-1, 2), density=True)
np.ravel_multi_index((np.abs(j), j), (3, 4)); np.unravel_index(j, (2, 3)); np.insert(v, 1, 9.0)
np.broadcast_to(v, (5, 4))
np.einsum("iij->j", np.stack([h, h, h])); np.cov(a); np.cov(a, b, ddof=0); np.cov(a, aweights=np.abs(v))
np.cov(a, fweights=[1, 2, 0, 3]); np.cov(v, np.cos(v)); np.corrcoef(a); np.corrcoef(a, b)
np.nanmax(m, initial=0.0); np.nanmean(m, where=p); np.average(c, axis=(0, 2), weights=np.ones((2, 4)))
np.unwrap(i, period=4)
"""

KNOWN_SIZES = """
np.unstack(a); np.delete(v, 1); np.delete(a, [0, 2], axis=0); np.resize(v, (2, 3)); np.array_split(v, 3)
np.array_split(a, 2); np.split(v, [1, 3]); np.repeat(v, [1, 0, 2, 1]); np.tril_indices(3)
np.triu_indices(3, 1); np.partition(v, [0, 1, 2, 3]); np.argpartition(v, [0, 1, 2, 3]); np.cumsum(p, axis=1)
np.insert(a, 1, v, axis=0); np.polyval(v, a); np.cross(w, w); np.cross(h, w)
np.linalg.cross(h, h)
np.fft.fft(z); np.fft.ifft(a, axis=0); np.fft.rfft(a); np.fft.irfft(z); np.fft.irfft(z, 5); np.fft.hfft(z)
np.fft.ihfft(a); np.fft.fftn(c); np.fft.ifftn(z); np.fft.rfftn(c); np.fft.irfftn(z)
np.fft.fft2(a, norm="ortho")
np.fft.ifft2(z); np.fft.rfft2(a); np.fft.irfft2(z); np.fft.fftshift(a); np.fft.ifftshift(a, axes=1)
np.linalg.solve(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])), w)
np.linalg.inv(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])))
np.linalg.det(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])))
np.linalg.slogdet(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])))[1]
np.linalg.cholesky(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])))
np.linalg.cholesky(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])), upper=True)
np.linalg.qr(np.add(a, np.eye(3, 4)))
np.linalg.qr(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])), mode="r")
np.linalg.eigh(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])))
np.linalg.eigvalsh(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])))
np.abs(np.linalg.eig(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])))[0])
np.abs(np.linalg.eigvals(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0]))))
np.linalg.svd(np.add(a, np.eye(3, 4)), full_matrices=False)[1]
np.linalg.svdvals(np.add(a, np.eye(3, 4)))
np.linalg.matrix_rank(a)
np.linalg.pinv(np.add(a, np.eye(3, 4)))
np.linalg.lstsq(np.add(np.transpose(a), np.eye(4, 3)), v)[0]
np.linalg.cond(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])))
np.linalg.matrix_power(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])), -2)
np.linalg.matrix_power(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])), 3)
np.linalg.norm(np.add(a, np.eye(3, 4)), 2)
np.linalg.norm(np.add(a, np.eye(3, 4)), "nuc")
np.linalg.matrix_norm(a)
np.linalg.vector_norm(c, axis=(0, 2))
np.linalg.vector_norm(a)
np.linalg.diagonal(c)
np.linalg.trace(c)
np.linalg.vecdot(a, b)
np.linalg.matrix_transpose(c)
np.linalg.tensorsolve(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])), w)
np.linalg.tensorinv(np.reshape(np.add(np.matmul(h, np.transpose(h)), np.diag([1.0, 2.0, 4.0])), (3, 1, 3)))
"""


@dataclass(frozen=True)
class Case:
    """`function(numpy, **operands)`; `symbolic`: works for sizes that are not known."""

    function: Callable
    symbolic: bool


def _case(line: str, symbolic: bool) -> Case:
    used = {node.id for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Name)} & set(OPERANDS)
    return Case(eval(f"lambda np{''.join(', ' + name for name in sorted(used))}: {line}", {}), symbolic)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in re.split("[;\n]", text) if line.strip()]


CASES = {
    line: _case(line, symbolic) for text, symbolic in ((ANY_SIZE, True), (KNOWN_SIZES, False)) for line in _lines(text)
}
