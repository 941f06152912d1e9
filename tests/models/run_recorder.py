"""The recorder of make_run_models.py: a folder per model, with the model as TensorFlow saves it and, step by step, what goes in and comes out."""
import json, os, shutil, types
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np, tensorflow as tf

keras, v1 = tf.keras, tf.compat.v1
settings = types.SimpleNamespace(root=None, rng=None)  # where models go, and the numbers of the one being made


def f32(*shape):
    return settings.rng.standard_normal(shape).astype(np.float32)


def save_value(path, value):
    """As the program reads and writes them: .npy, or .json for strings. Returns the file's name."""
    value = np.asarray(value)
    if value.dtype.kind in "OSU":
        data = [s.decode() if isinstance(s, bytes) else str(s) for s in value.ravel()]
        with open(path + ".json", "w") as file: json.dump({"dtype": "string", "shape": list(value.shape), "encoding": "utf8", "data": data}, file)
        return os.path.basename(path) + ".json"
    np.save(path + ".npy", value)
    return os.path.basename(path) + ".npy"


class Recorder:
    """Collects the steps of one model."""

    def __init__(self, name):
        self.folder = os.path.join(settings.root, name)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.model = os.path.join(self.folder, "model")
        self.steps = []
        os.makedirs(os.path.join(self.folder, "runs"))

    def step(self, signature, feeds, results):
        k = len(self.steps)
        step = {"signature": signature, "inputs": {}, "outputs": sorted(results), "output_dir": "out_%d" % k}
        for key, value in feeds.items():
            step["inputs"][key] = save_value(os.path.join(self.folder, "runs", "in_%d_%s" % (k, key)), value)
        for key, value in results.items():
            save_value(os.path.join(self.folder, "runs", "out_%d_%s" % (k, key)), value)
        self.steps.append(step)

    def finish(self):
        with open(os.path.join(self.folder, "runs", "steps.json"), "w") as file: json.dump(self.steps, file, indent=1)
        for leftover in ("fingerprint.pb", "keras_metadata.pb"):
            if os.path.exists(os.path.join(self.model, leftover)): os.remove(os.path.join(self.model, leftover))
        for empty in ("assets", "variables"):
            path = os.path.join(self.model, empty)
            if os.path.isdir(path) and not os.listdir(path): os.rmdir(path)
        print(os.path.basename(self.folder), len(self.steps), "steps", flush=True)


def record(name, module, signatures, calls):
    """Saves a module, loads it as TensorFlow does and records calls: (signature, {key: value})."""
    r = Recorder(name)
    tf.saved_model.save(module, r.model, signatures=signatures)
    loaded = tf.saved_model.load(r.model)
    for signature, feeds in calls:
        out = loaded.signatures[signature](**{k: tf.constant(v) for k, v in feeds.items()})
        r.step(signature, feeds, {k: v.numpy() for k, v in out.items()})
    r.finish()


def record_keras(name, model, calls):
    r = Recorder(name)
    model.export(r.model, verbose=False)
    f = tf.saved_model.load(r.model).signatures["serving_default"]
    for feeds in calls:
        out = f(**{k: tf.constant(v) for k, v in feeds.items()})
        r.step("serving_default", feeds, {k: v.numpy() for k, v in out.items()})
    r.finish()


def record1(name, build, calls, initialise=True):
    """A TensorFlow 1 graph. `build` gives (inputs, outputs) by key; calls are lists of feeds."""
    r = Recorder(name)
    with tf.Graph().as_default():
        v1.disable_control_flow_v2()
        v1.disable_resource_variables()
        inputs, outputs = build()
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            v1.saved_model.simple_save(session, r.model, inputs, outputs, legacy_init_op=v1.tables_initializer())
            for feeds in calls:
                out = session.run(outputs, {inputs[k]: v for k, v in feeds.items()})
                r.step("serving_default", feeds, out)
        v1.enable_control_flow_v2()
        v1.enable_resource_variables()
    r.finish()


def sig(**specs):
    return tf.function(input_signature=[tf.TensorSpec(shape, dtype, key) for key, (shape, dtype) in specs.items()])


def write_graph(r, graph_def, inputs, outputs):
    """A SavedModel without variables, whose graph keeps the version of its producer, as old ones have it."""
    from tensorflow.core.protobuf import saved_model_pb2
    saved = saved_model_pb2.SavedModel(saved_model_schema_version=1)
    meta = saved.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    meta.graph_def.CopyFrom(graph_def)
    signature = meta.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    for key, tensor in inputs.items(): signature.inputs[key].CopyFrom(v1.saved_model.utils.build_tensor_info(tensor))
    for key, tensor in outputs.items(): signature.outputs[key].CopyFrom(v1.saved_model.utils.build_tensor_info(tensor))
    os.makedirs(r.model)
    with open(os.path.join(r.model, "saved_model.pb"), "wb") as file: file.write(saved.SerializeToString())


def record_graph(name, graph_def, inputs, outputs, calls):
    """A GraphDef; inputs and outputs by key name its tensors."""
    r = Recorder(name)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        find = lambda names: {k: graph.get_tensor_by_name(n) for k, n in names.items()}
        ins, outs = find(inputs), find(outputs)
        write_graph(r, graph_def, ins, outs)
        with v1.Session() as session:
            for feeds in calls: r.step("serving_default", feeds, session.run(outs, {ins[k]: v for k, v in feeds.items()}))
    r.finish()


def old_graph(build):
    """What `build` makes with old control flow, as a GraphDef and the names of its inputs and outputs."""
    with tf.Graph().as_default() as graph:
        v1.disable_control_flow_v2()
        inputs, outputs = build()
        v1.enable_control_flow_v2()
    return graph.as_graph_def(), {k: t.name for k, t in inputs.items()}, {k: t.name for k, t in outputs.items()}
