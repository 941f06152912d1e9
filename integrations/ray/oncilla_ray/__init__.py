"""Oncilla on Ray: models as Serve deployments, and for Data's map_batches.

    from ray import serve
    import oncilla_ray

    handle = serve.run(oncilla_ray.deployment("model.onnx", num_replicas=2, num_cpus=1, max_batch_size=8))
    client = oncilla_ray.Client(handle)           # sends the requests of a dying replica again
    print(client(image=array))

    dataset.map_batches(oncilla_ray.Predictor, fn_constructor_args=("model.onnx",), num_cpus=1,
                        compute=ray.data.ActorPoolStrategy(size=2))

See docs/ray.md.
"""
from ._client import Client
from ._data import Predictor
from ._deployment import deployment, http

__all__ = ["Client", "Predictor", "deployment", "http"]
