#!/usr/bin/env python3
"""Exports one model of torch_models.py: export_torch.py NAME EXPORTER FOLDER writes model.onnx and a .npy for each feed."""

import pathlib
import sys

import numpy as np
import torch

import torch_models


class Flat(torch.nn.Module):
    """The model with tensors alone as results; feeds that have names are taken in their order."""

    def __init__(self, model, names, rest):
        super().__init__()
        self.model, self.names, self.rest = model, names, rest

    def forward(self, *feeds):
        if self.names:
            return tuple(tensors(self.model(**dict(zip(self.names, feeds)), **self.rest)))
        return tuple(tensors(self.model(*feeds)))


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from tensors(each)


def main():
    name, exporter, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, feeds = torch_models.make(name)
    for buffer_name, buffer in model.named_buffers():  # as training leaves them, not zeros and ones
        if buffer_name.endswith("running_var"):
            buffer.uniform_(0.8, 1.2)
        elif buffer_name.endswith("running_mean"):
            buffer.uniform_(-0.05, 0.05)
    keys, rest = [], {}
    if isinstance(feeds, dict):
        keys = [key for key, value in feeds.items() if isinstance(value, torch.Tensor)]
        rest = {key: value for key, value in feeds.items() if key not in keys}
        feeds = tuple(feeds[key] for key in keys)
    flat = list(tensors(feeds))
    keys_of_file = keys or [f"x{i}" for i in range(len(flat))]
    options = dict(opset_version=17, dynamo=False) if exporter == "script" else dict(dynamo=True, external_data=False)
    with torch.no_grad():
        torch.onnx.export(Flat(model.eval(), keys, rest).eval(), feeds, folder / "model.onnx", input_names=keys_of_file,
                          **options)
    for key, feed in zip(keys_of_file, flat):
        np.save(folder / f"{key}.npy", feed.numpy())


if __name__ == "__main__":
    main()
