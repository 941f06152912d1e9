"""Resizing of images."""
from recorder import *

for kind in ("", "corners", "half"):
    kw = dict(align_corners=kind == "corners", half_pixel_centers=kind == "half")
    for k, size in enumerate([(8, 9), (3, 2), (5, 5)]):
        case("ResizeBilinear_%s_%d" % (kind or "old", k), lambda a, kw=kw, size=size: raw.ResizeBilinear(images=a, size=c(list(size)), **kw), f32(1, 4, 5, 2))
        case("ResizeNearest_%s_%d" % (kind or "old", k), lambda a, kw=kw, size=size: raw.ResizeNearestNeighbor(images=a, size=c(list(size)), **kw), f32(1, 4, 5, 2))
case("ResizeBilinear_u8", lambda a: raw.ResizeBilinear(images=a, size=c([3, 7]), half_pixel_centers=True), i32(1, 4, 5, 3, lo=0, hi=255).astype(np.uint8))
case("ResizeNearest_u8", lambda a: raw.ResizeNearestNeighbor(images=a, size=c([3, 7])), i32(1, 4, 5, 3, lo=0, hi=255).astype(np.uint8))
