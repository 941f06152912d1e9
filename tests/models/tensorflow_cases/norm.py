"""Normalisations."""
from recorder import *

case("Softmax", lambda a: raw.Softmax(logits=a), f32(3, 7))
case("LogSoftmax", lambda a: raw.LogSoftmax(logits=a), f32(2, 3, 7))
case("FusedBatchNormV3", lambda a: raw.FusedBatchNormV3(x=a, scale=f32(5), offset=f32(5), mean=f32(5), variance=f32(5, lo=.5, hi=2), is_training=False, epsilon=1e-3).y, f32(2, 3, 4, 5))
case("FusedBatchNorm", lambda a: raw.FusedBatchNorm(x=a, scale=f32(5), offset=f32(5), mean=f32(5), variance=f32(5, lo=.5, hi=2), is_training=False).y, f32(2, 3, 4, 5))
case("FusedBatchNormV2", lambda a: raw.FusedBatchNormV2(x=a, scale=f32(5), offset=f32(5), mean=f32(5), variance=f32(5, lo=.5, hi=2), is_training=False).y, f32(2, 3, 4, 5))
case("LRN", lambda a: raw.LRN(input=a, depth_radius=2, bias=1.5, alpha=0.3, beta=0.7), f32(2, 2, 3, 7))
case("Layer_norm", lambda a: tf.nn.batch_normalization(a, *tf.nn.moments(a, [-1], keepdims=True), offset=f32(6), scale=f32(6), variance_epsilon=1e-6), f32(2, 3, 6))
