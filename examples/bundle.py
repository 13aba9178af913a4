"""Bundle adjustment: 40 cameras and 1,000 points from 10,000 observations, by a step written in NumPy.

In: photographs of a knot, as the places where each camera saw some of its points, a few of them wrong. Out: where the
cameras stood and what the knot looks like, by Levenberg and Marquardt's method: the Jacobian blocks of all observations
are one native loop, the normal equations are solved by conjugate gradients and no matrix is made. Checked against
differences, the truth, and SciPy's solver; with `--plot FILE` a picture. Run: `python examples/bundle.py
[--plot knot.png] [--device gpu]` (`--size`: how many observations).
"""

import importlib.util
import time

import numpy as np
from scipy.optimize import least_squares
from scipy.sparse.linalg import LinearOperator, cg
from scipy.spatial.transform import Rotation
from where import chosen, placed

import metaphrase as mp

SEEN_BY, NOISE, WRONG, HUBER = 10, 0.5, 0.02, 1.5  # cameras a point, pixels, share of wrong matches, pixels


def rotated(rotation, point):
    """The point turned about an axis, by an angle that is the axis's length: O. Rodrigues (1840)."""
    square = rotation @ rotation
    if square == 0.0:
        return point + np.cross(rotation, point)
    angle = np.sqrt(square)
    axis = rotation / angle
    cosine, sine = np.cos(angle), np.sin(angle)
    return cosine * point + sine * np.cross(axis, point) + (1.0 - cosine) * (axis @ point) * axis


def residual(camera, point, seen):
    """How many pixels an observation is off. A camera has nine numbers: a rotation and a translation, the focal length,
    two distortions (S. Agarwal, N. Snavely, S. Seitz, R. Szeliski, Bundle adjustment in the large, 2010)."""
    x, y, z = rotated(camera[:3], point) + camera[3:6]
    plane = np.array([-x / z, -y / z])
    square = plane @ plane
    return camera[6] * (1.0 + camera[7] * square + camera[8] * square**2) * plane - seen


@mp.jit
def residuals(cameras, points, seen, camera_of, point_of):
    return mp.vmap(residual)(cameras[camera_of], points[point_of], seen)


@mp.jit
def jacobian_blocks(cameras, points, seen, camera_of, point_of):
    """Of each observation how its residual changes with its camera, 2 x 9, and with its point, 2 x 3."""
    return mp.vmap(mp.jacrev(residual, argnums=(0, 1)))(cameras[camera_of], points[point_of], seen)


def fit(off):
    """How well residuals fit: P. J. Huber's loss (1964), half the square of a small one and of what is wrong altogether
    the distance alone; the root of the mean square distance, and the median one, in pixels."""
    size = np.abs(off)
    loss = np.where(size < HUBER, 0.5 * size**2, HUBER * (size - 0.5 * HUBER))
    squares = np.sum(off**2, axis=1)
    return np.sum(loss), np.sqrt(np.mean(squares)), np.sqrt(np.median(squares))


def gathered(rows, where, count):
    """The sum of the rows of each camera, or point."""
    total = np.zeros((count, *rows.shape[1:]))
    np.add.at(total, where, rows)
    return total


@mp.jit
def step(cameras, points, seen, camera_of, point_of, damping):
    """Where Levenberg and Marquardt's method goes from here, and how well that fits. The points are eliminated, which
    leaves equations for the cameras; their matrix, Schur's complement, is not made."""
    off = residuals(cameras, points, seen, camera_of, point_of)
    roots = np.sqrt(HUBER / np.maximum(np.abs(off), HUBER))
    of_camera, of_point = jacobian_blocks(cameras, points, seen, camera_of, point_of)
    of_camera, of_point, off = roots[:, :, None] * of_camera, roots[:, :, None] * of_point, roots * off

    def to_cameras(change):
        moved = np.einsum("nij,nj->ni", of_point, change[point_of])
        return gathered(np.einsum("nij,ni->nj", of_camera, moved), camera_of, len(cameras))

    def to_points(change):
        moved = np.einsum("nij,nj->ni", of_camera, change[camera_of])
        return gathered(np.einsum("nij,ni->nj", of_point, moved), point_of, len(points))

    def damped(blocks, where, count):
        normal = gathered(np.einsum("nki,nkj->nij", blocks, blocks), where, count)
        return normal * (1.0 + damping * np.eye(blocks.shape[2]))

    camera_normal = damped(of_camera, camera_of, len(cameras))
    inverse_camera = np.linalg.inv(camera_normal)
    inverse_point = np.linalg.inv(damped(of_point, point_of, len(points)))
    down_camera = -gathered(np.einsum("nij,ni->nj", of_camera, off), camera_of, len(cameras))
    down_point = -gathered(np.einsum("nij,ni->nj", of_point, off), point_of, len(points))

    def solved(inverse, rows):
        return np.einsum("nij,nj->ni", inverse, rows)

    def complement(flat):
        change = flat.reshape(cameras.shape)
        return (solved(camera_normal, change) - to_cameras(solved(inverse_point, to_points(change)))).reshape(-1)

    def nearly(flat):
        return solved(inverse_camera, flat.reshape(cameras.shape)).reshape(-1)

    right = down_camera - to_cameras(solved(inverse_point, down_point))
    shape = (cameras.size, cameras.size)
    operator, preconditioner = LinearOperator(shape, matvec=complement), LinearOperator(shape, matvec=nearly)
    found, info = cg(operator, right.reshape(-1), rtol=0.01, maxiter=200, M=preconditioner)
    change = found.reshape(cameras.shape)
    cameras = cameras + change
    points = points + solved(inverse_point, down_point - to_points(change))
    return cameras, points, fit(residuals(cameras, points, seen, camera_of, point_of))


def fit_of(cameras, points, view):
    return fit(mp.device_get(residuals(cameras, points, *view)))


def adjusted(cameras, points, view, tell=lambda *progress: None):
    """Cameras and points that fit what was seen. `tell` is given each step's number, damping, fit and seconds."""
    best, damping = fit_of(cameras, points, view)[0], 1e-3
    for k in range(1, 101):
        begin = time.perf_counter()
        *there, found = mp.device_get(step(cameras, points, *view, damping))
        tell(k, damping, found, time.perf_counter() - begin)
        if not found[0] < best:  # refused: again from where it was, and less far
            damping *= 10.0
            continue
        (cameras, points), gain = there, 1.0 - found[0] / best
        best, damping = found[0], max(damping / 5.0, 1e-10)
        if gain < 1e-8:
            break
    return cameras, points


def knot(count, random):
    """Points of a band that is knotted as a trefoil."""
    along, across = np.sort(random.uniform(0.0, 2.0 * np.pi, count)), random.uniform(-0.3, 0.3, count)
    ring = 2.0 + np.cos(3.0 * along) + across * np.cos(1.5 * along)
    height = np.sin(3.0 * along) + across * np.sin(1.5 * along)
    return np.stack([ring * np.cos(2.0 * along), ring * np.sin(2.0 * along), height], axis=1)


def looking(centres):
    """The rotations of cameras that look at the origin."""
    back = centres / np.linalg.norm(centres, axis=1, keepdims=True)
    right = np.cross((0.0, 0.0, 1.0), back)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    return Rotation.from_matrix(np.stack([right, np.cross(back, right), back], axis=1))


def scene(size):
    """Cameras and points as they are, and what was seen of them: places, and the numbers of a camera and a point."""
    random = np.random.default_rng(4)
    count, seen_by = max(6, min(40, size // 60)), min(SEEN_BY, max(6, min(40, size // 60)))
    points = knot(-(-size // seen_by), random)
    turn = 2.0 * np.pi * np.arange(count) / count
    heights = 2.0 + 2.0 * np.sin(2.0 * turn)
    centres = np.stack([9.0 * np.cos(turn), 9.0 * np.sin(turn), heights], axis=1) + random.normal(0.0, 0.2, (count, 3))
    look = looking(centres) * Rotation.from_rotvec(random.normal(0.0, 0.02, (count, 3)))
    focal = random.uniform(900.0, 1100.0, (count, 1))
    radial = random.normal(0.0, (0.05, 0.02), (count, 2))
    cameras = np.concatenate([look.as_rotvec(), -look.apply(centres), focal, radial], axis=1)
    nearness = points @ centres.T + random.normal(0.0, 12.0, (len(points), count))
    camera_of = np.argsort(-nearness, axis=1)[:, :seen_by].reshape(-1)[:size]
    point_of = np.repeat(np.arange(len(points)), seen_by)[:size]
    seen = np.zeros((size, 2))
    seen = mp.device_get(residuals(cameras, points, seen, camera_of, point_of))
    seen += random.normal(0.0, NOISE, seen.shape)
    wrong = random.random(size) < WRONG
    seen[wrong] += random.normal(0.0, 60.0, (np.count_nonzero(wrong), 2))
    return cameras, points, (seen, camera_of, point_of)


def guessed(cameras, points):
    """What one might begin with: a good deal off, and no distortion known."""
    random = np.random.default_rng(5)
    spread = np.array([0.03] * 3 + [0.3] * 3 + [30.0, 0.0, 0.0])
    start = cameras + spread * random.normal(0.0, 1.0, cameras.shape)
    start[:, 7:] = 0.0
    return start, points + random.normal(0.0, 0.3, points.shape)


def centres_of(cameras):
    return -Rotation.from_rotvec(cameras[:, :3]).inv().apply(cameras[:, 3:6])


def alike(points, truth):
    """The motion and scale that lay points on the truth, which no photograph tells: S. Umeyama (1991)."""
    here, there = points - points.mean(axis=0), truth - truth.mean(axis=0)
    left, sizes, right = np.linalg.svd(there.T @ here)
    signs = np.array([1.0, 1.0, np.linalg.det(left @ right)])
    turn, scale = (left * signs) @ right, (sizes @ signs) / np.sum(here**2)
    return lambda x: scale * (x - points.mean(axis=0)) @ turn.T + truth.mean(axis=0)


def distance(x, y):
    """The root of the mean square of the distances of points."""
    return np.sqrt(np.mean(np.sum((x - y) ** 2, axis=1)))


def loss_by_scipy(cameras, points, view):
    """The least loss by SciPy, which takes differences for derivatives."""

    def flat(x):
        there = x[: cameras.size].reshape(cameras.shape), x[cameras.size :].reshape(points.shape)
        return residuals(*there, *view).reshape(-1)

    start = np.concatenate([cameras.reshape(-1), points.reshape(-1)])
    with mp.default_device("cpu"):
        return least_squares(flat, start, loss="huber", f_scale=HUBER).cost


def farthest_from_differences(cameras, points, view):
    """How far the Jacobian blocks are from differences, as a part of the largest element of each column."""
    blocks, worst = mp.device_get(jacobian_blocks(cameras, points, *view)), 0.0
    for block, which in zip(blocks, (0, 1)):
        for j in range(block.shape[2]):
            ends = []
            for h in (1e-6, -1e-6):
                moved = [cameras.copy(), points.copy()]
                moved[which][:, j] += h * max(1.0, np.abs(moved[which][:, j]).max())
                ends.append((moved[which][0, j], mp.device_get(residuals(*moved, *view))))
            (there, above), (here, below) = ends
            differences = (above - below) / (there - here)
            worst = max(worst, np.abs(block[:, :, j] - differences).max() / np.abs(differences).max())
    return worst


def draw_camera(axes, camera, colour):
    """A pyramid from the camera's centre to the corners of its picture."""
    turn, centre = Rotation.from_rotvec(camera[:3]).inv(), centres_of(camera[None])[0]
    corners = centre + turn.apply([[x, y, -1.2] for x, y in ((-0.5, -0.4), (0.5, -0.4), (0.5, 0.4), (-0.5, 0.4))])
    for k in range(4):
        lines = np.stack([centre, corners[k], corners[(k + 1) % 4]])
        axes.plot(*lines.T, color=colour, linewidth=0.7, clip_on=False)


def draw_picture(path, before, after, progress):
    """The guess, what came of it, and how far off it was after each step."""
    from matplotlib import pyplot

    pyplot.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False})
    figure = pyplot.figure(figsize=(15, 5.2), layout="constrained")
    grid = figure.add_gridspec(1, 3, width_ratios=(1.25, 1.25, 1))
    for k, (title, (cameras, points)) in enumerate({"The guess": before, "Adjusted": after}.items()):
        axes = figure.add_subplot(grid[k], projection="3d")
        colours = np.linspace(0.0, 1.0, len(points))
        axes.scatter(*points.T, c=colours, cmap="twilight_shifted", s=7, depthshade=False)
        for camera in cameras:
            draw_camera(axes, camera, "#2a6f97")
        axes.set(xlim=(-7, 7), ylim=(-7, 7), zlim=(-3.5, 3.5), title=title)
        axes.set_box_aspect((2, 2, 1), zoom=1.25)
        axes.view_init(elev=38, azim=-62)
        axes.set_axis_off()
    axes = figure.add_subplot(grid[2])
    for values, colour, label in zip(np.transpose(progress), ("#c1440e", "#2a6f97"), ("root of mean square", "median")):
        axes.semilogy(values, "o-", color=colour, markersize=5, markeredgecolor="white", label=label)
    axes.axhline(NOISE * np.sqrt(2.0 * np.log(2.0)), color="#9a9a9a", linestyle=":", label="median of the noise")
    axes.set(xlabel="step", ylabel="distance from what was seen (pixels)", title="What is left")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=130)


def main(size, plot):
    true_cameras, true_points, view = scene(size)
    cameras, points = guessed(true_cameras, true_points)
    unknowns = cameras.size + points.size
    print(f"{size:,} observations, {len(cameras)} cameras, {len(points):,} points: {unknowns:,} unknowns")
    worst = farthest_from_differences(cameras, points, view)
    print(f"  the Jacobian blocks are within {worst:.1e} of differences")
    assert worst < 1e-5

    print("  step  damping         loss    rms pixels  median pixels        s")
    first = fit_of(cameras, points, view)
    print(f"  {0:4}  {'':7} {first[0]:12.2f} {first[1]:13.4f} {first[2]:14.4f}")
    progress = [first[1:]]

    def tell(k, damping, found, seconds):
        print(f"  {k:4}  {damping:7.0e} {found[0]:12.2f} {found[1]:13.4f} {found[2]:14.4f} {seconds:8.4f}")
        progress.append([float(x) for x in found[1:]])

    fitted_cameras, fitted_points = adjusted(cameras, points, view, tell)
    begin = time.perf_counter()
    adjusted(cameras, points, view)
    print(f"  once more: {time.perf_counter() - begin:.3f} s")

    print("                        guess      adjusted")
    rows = []
    for some_cameras, some_points in ((cameras, points), (fitted_cameras, fitted_points)):
        onto = alike(some_points, true_points)
        away = (
            distance(onto(some_points), true_points),
            distance(onto(centres_of(some_cameras)), centres_of(true_cameras)),
        )
        rows.append((*away, np.median(np.abs(some_cameras[:, 6] - true_cameras[:, 6]))))
    for name, guess, found in zip(("points off by", "cameras off by", "focal lengths off by"), *rows):
        print(f"  {name:20} {guess:9.4f}    {found:9.4f}")
    print("  (of a knot 6 across, up to a motion and a scale; focal lengths of about 1000 pixels, the median)")
    assert rows[1][0] < 0.1 * rows[0][0] and rows[1][1] < rows[0][1]

    few = scene(min(size, 150))
    start = guessed(*few[:2])
    theirs, ours = loss_by_scipy(*start, few[2]), fit_of(*adjusted(*start, few[2]), few[2])[0]
    print(f"  the loss of {len(few[2][0])} observations is {ours:.6f}, by SciPy's least_squares {theirs:.6f}")
    assert abs(ours - theirs) < 1e-4 * theirs

    if plot and not importlib.util.find_spec("matplotlib"):
        print("  no picture: it takes matplotlib")
    elif plot:
        onto = alike(fitted_points, true_points)
        draw_picture(plot, (cameras, points), (fitted_cameras, fitted_points), progress)
        print(f"  wrote {plot}")


if __name__ == "__main__":
    device, size, plot = chosen(__doc__, "observations", 10_000, emulator=150, plot="a file for a picture of the knot")
    with placed(device):
        main(size, plot)
