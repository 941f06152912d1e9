"""Custom ops of MediaPipe's models. LiteRT has none of them, so their answers are computed here, as their published
kernels say, number by number."""
import math

import numpy as np
from flatbuffers import flexbuffers
from tflite_recorder import Out, known, random


def table(**values):
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in values.items():
            builder.Key(key)
            if isinstance(value, list):
                builder.TypedVectorFromElements(value)
            else:
                builder.Add(value)
    return bytes(builder.Finish())


def pool_struct(same, stride, window):
    return np.array([1 if same else 2, stride[1], stride[0], window[1], window[0], 0, 0, 0, 0, 0], np.int32).tobytes()


def border(size, windows, window, stride):
    return max(0, (windows - 1) * stride + window - size) // 2


def pool(x, same, stride, window):
    n, h, w, c = x.shape
    out = [-(-size // s) if same else (size - k) // s + 1 for size, s, k in zip((h, w), stride, window)]
    top, left = (border(size, o, k, s) if same else 0 for size, o, k, s in zip((h, w), out, window, stride))
    y, where = np.zeros([n, *out, c], np.float32), np.zeros([n, *out, c], np.float32)
    for b, i, j, channel in np.ndindex(*y.shape):
        best = -np.inf
        for u in range(window[0]):
            for v in range(window[1]):
                row, column = i * stride[0] - top + u, j * stride[1] - left + v
                if 0 <= row < h and 0 <= column < w and x[b, row, column, channel] > best:
                    best = x[b, row, column, channel]
                    y[b, i, j, channel], where[b, i, j, channel] = best, np.float32(u * window[1] + v) + np.float32(0.1)
    return y, where


def unpool(x, where, stride, window):
    n, h, w, c = x.shape
    out = np.zeros([n, h * window[0], w * window[1], c], np.float32)
    top, left = (border(o, size, k, s) for o, size, k, s in zip(out.shape[1:3], (h, w), window, stride))
    for b, i, j, channel in np.ndindex(*x.shape):
        index = int(where[b, i, j, channel])
        row, column = i * stride[0] - top + index // window[1], j * stride[1] - left + index % window[1]
        if 0 <= row < out.shape[1] and 0 <= column < out.shape[2]:
            out[b, row, column, channel] = x[b, i, j, channel]
    return out


image = random("image", [2, 6, 7, 3], -2, 2)
for same, stride, window, name in ((True, (2, 2), (2, 2), "same"), (False, (2, 2), (2, 2), "valid"), (True, (1, 2), (3, 2), "overlapping")):
    y, where = pool(image, same, stride, window)
    known(f"max_pool_argmax_{name}", "MaxPoolingWithArgmax2D", [image], [Out(), Out()], pool_struct(same, stride, window), [y, where])
    known(f"max_unpool_{name}", "MaxUnpooling2D", [y, where], [Out()], pool_struct(same, stride, window), [unpool(y, where, stride, window)])
far = np.full([1, 2, 2, 1], 9.1, np.float32)
known("max_unpool_outside", "MaxUnpooling2D", [random("far", [1, 2, 2, 1]), far], [Out()], pool_struct(True, (2, 2), (2, 2)),
      [unpool(random("far", [1, 2, 2, 1]), far, (2, 2), (2, 2))])


def turned(points, r):
    return [(x * math.cos(r) - y * math.sin(r), x * math.sin(r) + y * math.cos(r)) for x, y in points]


def box(points, r):
    u, v = zip(*turned(points, r))
    middle = turned([((max(u) + min(u)) / 2, (max(v) + min(v)) / 2)], -r)[0]
    return max(u) - min(u), max(v) - min(v), middle


def matrix_v2(landmarks, o):
    p = landmarks.reshape(-1, 3)[:, :2].astype(np.float64)
    (lx, ly), (rx, ry) = p[o["left_rotation_idx"]], p[o["right_rotation_idx"]]
    r = o["target_rotation_radians"] - math.atan2(ry - ly, rx - lx)
    width, height, (x, y) = box([p[i] for i in o["subset_idxs"]], r)
    shift, turn, scale, centre = (np.eye(4) for _ in range(4))
    shift[:2, 3] = x, y
    turn[:2, :2] = [[math.cos(-r), -math.sin(-r)], [math.sin(-r), math.cos(-r)]]
    scale[0, 0], scale[1, 1] = o["scale_x"] * width / o["output_width"], o["scale_y"] * height / o["output_height"]
    centre[:2, 3] = -o["output_width"] / 2, -o["output_height"] / 2
    return (shift @ turn @ scale @ centre).astype(np.float32)[None]


def matrix_v1(landmarks, o):
    p = landmarks.reshape(-1, 3)[:, :2].astype(np.float64)
    (lx, ly), (rx, ry) = p[o["left_rotation_idx"]], p[o["right_rotation_idx"]]
    a = -math.atan((ry - ly) / (rx - lx))
    width, height, (x, y) = box([p[i] for i in o["subset"]], a)
    span = o["landmarks_range"]
    scale = np.diag([width * o["bbox_size_multiplier"] / span, height * o["bbox_size_multiplier"] / span, 1])
    turn = np.array([[math.cos(-a), -math.sin(-a), x / span * 2 - 1], [math.sin(-a), math.cos(-a), y / span * 2 - 1], [0, 0, 1]])
    relative, absolute = np.eye(3), np.eye(3)
    for axis, key in ((0, 1), (1, 0)):
        relative[axis] = [2 / (o["output_hw"][key] - 1) if axis == 0 else 0, 2 / (o["output_hw"][key] - 1) if axis == 1 else 0, -1]
        half = (o["input_hw"][key] - 1) / 2
        absolute[axis] = [half if axis == 0 else 0, half if axis == 1 else 0, half]
    m = absolute @ turn @ scale @ relative
    out = np.zeros([1, 4, 4], np.float32)
    out[0, :2, :2], out[0, :2, 3], out[0, 2, 2], out[0, 3, 3] = m[:2, :2], m[:2, 2], 1, 1
    return out


face = random("face", [1, 20, 3], 10, 180)
options = dict(left_rotation_idx=3, right_rotation_idx=11, output_height=16, output_width=24, scale_x=1.5, scale_y=1.25,
               subset_idxs=[2, 4, 6, 8, 10], target_rotation_radians=0.2)
turn = matrix_v2(face, options)
known("transform_matrix", "Landmarks2TransformMatrix", [face], [Out()], table(**options), [turn], version=2)
first = dict(bbox_size_multiplier=1.5, dimensions=3, input_hw=[128, 192], output_hw=[16, 24], landmarks_range=192, left_rotation_idx=3,
             right_rotation_idx=11, subset=[2, 4, 6, 8, 10, 12])
known("transform_matrix_first", "Landmarks2TransformMatrix", [face.reshape(1, 1, 1, 60)], [Out()], table(**first), [matrix_v1(face, first)])


def moved(points, m, scale=1.0):
    out = points.copy()
    out[..., 0] = m[0, 0, 0] * points[..., 0] + m[0, 0, 1] * points[..., 1] + m[0, 0, 3] * scale
    out[..., 1] = m[0, 1, 0] * points[..., 0] + m[0, 1, 1] * points[..., 1] + m[0, 1, 3] * scale
    return out


known("transform_landmarks", "TransformLandmarks", [face, turn], [Out()], b"", [moved(face, turn)], version=2)
flat = face[..., :2].reshape(1, 1, 1, 40)
known("transform_landmarks_first", "TransformLandmarks", [flat, turn], [Out()], table(dimensions=2, scale=0.5),
      [moved(face[..., :2], turn, 0.5).reshape(1, 1, 1, 40)])


def warped(x, m, height, width, centres):
    _, h, w, c = x.shape
    rows = m[0, :2].astype(np.float32).copy()
    if centres:
        rows[:, 3] += rows[:, 0] * np.float32(0.5) + rows[:, 1] * np.float32(0.5) - np.float32(0.5)
    padded = np.pad(x[0], [[0, 1], [0, 1], [0, 0]])
    out = np.zeros([1, height, width, c], np.float32)
    for i, j in np.ndindex(height, width):
        u, v = (row[0] * j + row[1] * i + row[3] for row in rows)
        if 0 <= u <= w - 1 and 0 <= v <= h - 1:
            column, row = math.floor(u), math.floor(v)
            a, b = u - column, v - row
            upper = (1 - a) * padded[row, column] + a * padded[row, column + 1]
            lower = (1 - a) * padded[row + 1, column] + a * padded[row + 1, column + 1]
            out[0, i, j] = (1 - b) * upper + b * lower
    return out


picture = random("picture", [1, 9, 12, 3])
small = np.eye(4, dtype=np.float32)[None].copy()
small[0, 0], small[0, 1] = [0.61, 0.17, 0, -1.3], [-0.13, 0.72, 0, 0.9]
known("transform_tensor", "TransformTensorBilinear", [picture, small], [Out()], table(output_height=11, output_width=20), [warped(picture, small, 11, 20, True)], version=2)
known("transform_tensor_first", "TransformTensorBilinear", [picture, small], [Out()], table(mode="bilinear", output_size=[11, 20]), [warped(picture, small, 11, 20, False)])
