"""Ops that move, join and take apart, and resizing."""
import numpy as np
from tflite_recorder import Fed, Given, Out, case, options, random

x = random("x", [2, 3, 4, 5])
ints = random("i", [2, 3, 4], -9, 9, np.int32)


def i32(*values):
    return Given(np.array(values, np.int32))


case("reshape", "RESHAPE", [x, i32(4, -1)], Out(), options("ReshapeOptions"))
case("reshape_option", "RESHAPE", [x], Out(), options("ReshapeOptions", newShape=np.array([6, 20], np.int32)))
case("reshape_scalar", "RESHAPE", [x[:1, :1, :1, :1], Given(np.zeros([0], np.int32))], Out(), options("ReshapeOptions"))
case("reshape_fed_shape", "RESHAPE", [x, np.array([8, 15], np.int32)], Out(), options("ReshapeOptions"))
case("squeeze", "SQUEEZE", [x[:1, :, :1]], Out(), options("SqueezeOptions"))
case("squeeze_axis", "SQUEEZE", [x[:1, :, :1]], Out(), options("SqueezeOptions", squeezeDims=np.array([-2], np.int32)))
case("expand_dims", "EXPAND_DIMS", [x, i32(-2)], Out(), options("ExpandDimsOptions"))
case("transpose", "TRANSPOSE", [x, i32(2, 0, 3, 1)], Out(), options("TransposeOptions"))
case("transpose_i32", "TRANSPOSE", [ints, i32(2, 1, 0)], Out(np.int32), options("TransposeOptions"))
case("slice", "SLICE", [x, i32(0, 1, 1, 2), i32(2, -1, 2, 3)], Out(), options("SliceOptions"))
case("slice_fed", "SLICE", [x, np.array([1, 0, 2, 0], np.int32), np.array([1, 2, -1, 5], np.int32)], Out(), options("SliceOptions"))


def strided(**fields):
    return options("StridedSliceOptions", **fields)


case("strided_slice", "STRIDED_SLICE", [x, i32(0, 2, 3, 4), i32(2, 0, 0, 0), i32(1, -1, -2, -1)], Out(), strided())
case("strided_slice_masks", "STRIDED_SLICE", [x, i32(1, 1, 1, 1), i32(2, 2, 2, 2), i32(1, 1, 1, 2)], Out(), strided(beginMask=2, endMask=4))
case("strided_slice_shrink", "STRIDED_SLICE", [x, i32(0, -1, 1, 1), i32(0, 0, 3, 4), i32(1, 1, 1, 1)], Out(), strided(shrinkAxisMask=2, endMask=1))
case("strided_slice_new_axis", "STRIDED_SLICE", [x, i32(0, 0, 1), i32(0, 2, 3), i32(1, 1, 1)], Out(), strided(newAxisMask=1))
case("strided_slice_ellipsis", "STRIDED_SLICE", [x, i32(0, 0, 1), i32(1, 0, 3), i32(1, 1, 1)], Out(), strided(ellipsisMask=2))
pads = Given(np.array([[0, 1], [2, 0], [0, 0], [1, 3]], np.int32))
case("pad", "PAD", [x, pads], Out(), options("PadOptions"))
case("padv2", "PADV2", [x, pads, Given(np.float32(2.5))], Out(), options("PadV2Options"))
case("pad_i8", "PAD", [Fed(random("q", [2, 3, 4, 5], -128, 127, np.int8), (0.5, -7)), pads], Out(np.int8, q=(0.5, -7)), options("PadOptions"))
mirrored = Given(np.array([[0, 0], [2, 1], [1, 2], [0, 0]], np.int32))
case("mirror_pad", "MIRROR_PAD", [x, mirrored], Out(), options("MirrorPadOptions", mode=0))
case("mirror_pad_symmetric", "MIRROR_PAD", [x, mirrored], Out(), options("MirrorPadOptions", mode=1))
case("tile", "TILE", [ints, i32(2, 1, 3)], Out(np.int32), options("TileOptions"))
case("broadcast_to", "BROADCAST_TO", [x[:, :1], i32(3, 2, 3, 4, 5)], Out(), options("BroadcastToOptions"))
case("reverse_v2", "REVERSE_V2", [x, i32(2)], Out(), options("ReverseV2Options"))
case("reverse_sequence", "REVERSE_SEQUENCE", [x, np.array([1, 3], np.int32)], Out(), options("ReverseSequenceOptions", seqDim=1, batchDim=0))
image = random("image", [1, 4, 6, 8])
case("depth_to_space", "DEPTH_TO_SPACE", [image], Out(), options("DepthToSpaceOptions", blockSize=2))
case("space_to_depth", "SPACE_TO_DEPTH", [image], Out(), options("SpaceToDepthOptions", blockSize=2))
case("space_to_batch_nd", "SPACE_TO_BATCH_ND", [image, i32(2, 3), Given(np.array([[1, 1], [0, 0]], np.int32))], Out(), options("SpaceToBatchNDOptions"))
case("batch_to_space_nd", "BATCH_TO_SPACE_ND", [random("blocks", [4, 3, 2, 1]), i32(2, 2), Given(np.array([[1, 0], [0, 1]], np.int32))], Out(),
     options("BatchToSpaceNDOptions"))
for start in ([0, 1, 2, 0], [1, 9, -4, 3]):
    case(f"dynamic_update_slice_{start[1]}", "DYNAMIC_UPDATE_SLICE", [x, random("u", [1, 2, 2, 3]), np.array(start, np.int32)], Out(),
         options("DynamicUpdateSliceOptions"))
case("concat", "CONCATENATION", [x, x[:, :, :1] * 2], Out(), options("ConcatenationOptions", axis=2))
case("concat_negative_axis", "CONCATENATION", [x, x * 2], Out(), options("ConcatenationOptions", axis=-1))
case("concat_i64", "CONCATENATION", [ints.astype(np.int64), ints.astype(np.int64)], Out(np.int64), options("ConcatenationOptions", axis=0))
case("split", "SPLIT", [Given(np.int32(2)), x], [Out(), Out()], options("SplitOptions", numSplits=2))
case("split_v", "SPLIT_V", [x, i32(1, 3, 1), Given(np.int32(3))], [Out(), Out(), Out()], options("SplitVOptions", numSplits=3))
case("split_v_rest", "SPLIT_V", [x, i32(2, -1), Given(np.int32(-1))], [Out(), Out()], options("SplitVOptions", numSplits=2))
case("pack", "PACK", [x, x * 2, x * 3], Out(), options("PackOptions", valuesCount=3, axis=1))
case("pack_last", "PACK", [ints, ints], Out(np.int32), options("PackOptions", valuesCount=2, axis=-1))
case("unpack", "UNPACK", [x], [Out(), Out(), Out()], options("UnpackOptions", num=3, axis=1))
for corners, centers in ((False, False), (True, False), (False, True)):
    name = "corners" if corners else "centers" if centers else "plain"
    flags = dict(alignCorners=corners, halfPixelCenters=centers)
    for to in ((7, 5), (2, 13)):
        case(f"bilinear_{name}_{to[0]}", "RESIZE_BILINEAR", [image, i32(*to)], Out(), options("ResizeBilinearOptions", **flags))
        case(f"nearest_{name}_{to[0]}", "RESIZE_NEAREST_NEIGHBOR", [image, i32(*to)], Out(), options("ResizeNearestNeighborOptions", **flags))
