"""Small networks of PyTorch, each through one of its two exporters.

    pip install torch onnx onnxscript onnxruntime
    python torch_zoo.py [NAME…]

With names, these models alone are made again.
"""

import sys
import warnings

import onnx
import torch
from common import HERE, SAMPLES, write
from torch import nn
from torch.nn import functional as F

SCRIPT, DYNAMO = "PyTorch, TorchScript exporter", "PyTorch, torch.export"


class Square(nn.Module):
    def forward(self, x):
        return 0.3 * x * x + 0.5 * x + 0.1


class Fn(nn.Module):
    """A function with the layers that it uses."""

    def __init__(self, f, **layers):
        super().__init__()
        self.f = f
        for key, layer in layers.items():
            setattr(self, key, layer)

    def forward(self, *x):
        return self.f(self, *x)


def shrink(path):
    """Without the text that exporters add for people."""
    model = onnx.load(path)
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    for value in [*model.graph.value_info, *model.graph.input, *model.graph.output]:
        del value.metadata_props[:]
    model.graph.ClearField("doc_string")
    del model.functions[:]
    onnx.save(model, path)


def export(name, what, model, *shapes, exporter=SCRIPT, opset=17, outputs=("y",), batched=True, pixels=False, **card):
    if sys.argv[1:] and name not in sys.argv[1:]:
        return
    torch.manual_seed(sum(map(ord, name)))
    model.eval()
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)):
            nn.init.uniform_(module.running_mean, -0.3, 0.3)
            nn.init.uniform_(module.running_var, 0.6, 1.4)
    inputs = [f"x{i}" if len(shapes) > 1 else "x" for i in range(len(shapes))]
    samples = [torch.randn(SAMPLES, *shape) for shape in shapes]
    if pixels:
        samples = [torch.randint(0, 256, s.shape, dtype=torch.uint8) for s in samples]
    path = HERE / f"{name}.onnx"
    one = (lambda s, i: s[i : i + 1]) if batched else (lambda s, i: s[i])
    example = tuple(one(s, 0) for s in samples)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if exporter == SCRIPT:
            torch.onnx.export(model, example, path, dynamo=False, opset_version=opset,
                              input_names=inputs, output_names=list(outputs))
        else:
            program = torch.onnx.export(model, example, dynamo=True, opset_version=max(opset, 18), verbose=False,
                                        input_names=inputs, output_names=list(outputs))
            program.save(path)
        answers = [model(*(one(s, i) for s in samples)) for i in range(SAMPLES)]
    shrink(path)
    answers = [tuple(a.values()) if isinstance(a, dict) else a if isinstance(a, tuple) else (a,) for a in answers]
    results = {key: torch.cat([a[i].reshape(1, -1) for a in answers]).numpy() for i, key in enumerate(outputs)}
    if card.get("expect") == "approximated":
        card["calibrate"] = {key: torch.randn(40, *shape).numpy() for key, shape in zip(inputs, shapes)}
    if card.get("expect") == "refused":
        results = {}
    write(name, exporter, what, {k: s.numpy() for k, s in zip(inputs, samples)}, results, **card)


def cnn(activation, classes=3):
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), activation(), nn.AvgPool2d(2), nn.Flatten(),
                         nn.Linear(27, classes))


def mlp(activation):
    return nn.Sequential(nn.Linear(6, 8), activation(), nn.Linear(8, 3))


def attention(m, x):
    q, k = m.q(x), m.k(x)
    return (q @ k.transpose(1, 2)) @ m.v(x)


class Mixer(nn.Module):
    """Patches as tokens, mixed without attention."""

    def __init__(self, channels=4, tokens=4):
        super().__init__()
        self.patches = nn.Conv2d(1, channels, 4, stride=4)
        self.norm = nn.BatchNorm1d(tokens)
        self.over_tokens = nn.Sequential(nn.Linear(tokens, tokens), Square(), nn.Linear(tokens, tokens))
        self.over_channels = nn.Sequential(nn.Linear(channels, 2 * channels), Square(), nn.Linear(2 * channels, channels))
        self.head = nn.Linear(channels, 3)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + self.over_tokens(self.norm(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.over_channels(x)
        return self.head(x.mean(1))


def mobile():
    block = nn.Sequential(nn.Conv2d(4, 8, 1, bias=False), nn.BatchNorm2d(8), Square(), nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False),
                          nn.BatchNorm2d(8), Square(), nn.Conv2d(8, 4, 1, bias=False), nn.BatchNorm2d(4))
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    return Fn(lambda m, x: m.head((h := m.stem(x)) + m.block(h)), stem=nn.Conv2d(3, 4, 3, stride=2, padding=1), block=block, head=head)


def unet():
    def run(m, x):
        high = m.act(m.down(x))
        low = m.act(m.middle(F.avg_pool2d(high, 2)))
        return m.out(torch.cat([high, m.up(low)], 1))

    return Fn(run, down=nn.Conv2d(1, 2, 3, padding=1), middle=nn.Conv2d(2, 2, 3, padding=1), up=nn.ConvTranspose2d(2, 2, 2, 2), out=nn.Conv2d(4, 1, 1), act=Square())


def assigned(m, x):
    y = m.a(x)
    y[:, 0, 1:3] = 0.5
    return m.b(torch.flatten(y[:, :, [1, 4], [0, 5]], 1))


def quantized(name, what, model, shape, **card):
    """The model in integers, as onnxruntime makes it."""
    if sys.argv[1:] and name not in sys.argv[1:]:
        return
    from onnxruntime.quantization import CalibrationDataReader, quantize_static

    class Samples(CalibrationDataReader):
        left = [torch.randn(1, *shape).numpy() for _ in range(4)]

        def get_next(self):
            return {"x": self.left.pop()} if self.left else None

    before = HERE / "before.onnx"
    torch.onnx.export(model.eval(), torch.randn(1, *shape), before, dynamo=False, opset_version=17, input_names=["x"], output_names=["y"])
    quantize_static(before, HERE / f"{name}.onnx", Samples())
    before.unlink()
    write(name, "PyTorch, onnxruntime.quantization", what, {"x": torch.randn(SAMPLES, *shape).numpy()}, {}, **card)


def integer_weights(name, what, model, shape):
    """The model with its matrices as bytes, and a scale for every row of them."""
    if sys.argv[1:] and name not in sys.argv[1:]:
        return
    import onnxruntime
    from onnx import helper, numpy_helper

    path = HERE / f"{name}.onnx"
    torch.manual_seed(sum(map(ord, name)))
    torch.onnx.export(model.eval(), torch.randn(1, *shape), path, dynamo=False, opset_version=17, input_names=["x"], output_names=["y"])
    proto = onnx.load(path)
    for tensor in [t for t in proto.graph.initializer if len(t.dims) == 2]:
        values = numpy_helper.to_array(tensor)
        scale = abs(values).max(1) / 127
        kept = [numpy_helper.from_array(a, f"{tensor.name}.{key}") for key, a in (("bytes", (values / scale[:, None]).round().astype("int8")), ("scale", scale))]
        proto.graph.node.insert(0, helper.make_node("DequantizeLinear", [k.name for k in kept], [tensor.name], axis=0))
        proto.graph.initializer.remove(tensor)
        proto.graph.initializer.extend(kept)
    onnx.save(proto, path)
    shrink(path)
    x = torch.randn(SAMPLES, *shape).numpy()
    session = onnxruntime.InferenceSession(str(path))
    answers = [session.run(None, {"x": x[i : i + 1]})[0][0] for i in range(SAMPLES)]
    write(name, "PyTorch, TorchScript exporter", what, {"x": x}, {"y": answers})


def main():
    image = (1, 8, 8)
    export("pt-cnn", "CNN with batch normalization, quadratic activation, average pool", cnn(Square), image)
    export("pt-cnn-dynamo", "the same through torch.export", cnn(Square), image, exporter=DYNAMO)
    export("pt-softmax", "CNN ending in a softmax", nn.Sequential(cnn(Square), nn.Softmax(1)), image)
    export("pt-log-softmax", "CNN ending in a log-softmax", nn.Sequential(cnn(Square), nn.LogSoftmax(1)), image, exporter=DYNAMO)
    export("pt-sigmoid", "MLP ending in a sigmoid", nn.Sequential(nn.Linear(6, 4), Square(), nn.Linear(4, 1), nn.Sigmoid()), (6,))
    export("pt-argmax", "MLP ending in an argmax", Fn(lambda m, x: m.net(x).argmax(1), net=mlp(Square)), (6,))
    export("pt-conv1d", "Conv1d network on [batch, channels, length]", nn.Sequential(nn.Conv1d(3, 4, 5, stride=2), Square(), nn.AvgPool1d(2), nn.Flatten(), nn.Linear(28, 2)), (3, 32))
    export("pt-conv1d-dynamo", "the same through torch.export", nn.Sequential(nn.Conv1d(3, 4, 5, stride=2), Square(), nn.AvgPool1d(2), nn.Flatten(), nn.Linear(28, 2)), (3, 32), exporter=DYNAMO)
    export("pt-conv-transpose", "ConvTranspose2d, an image as the result", nn.Sequential(nn.Conv2d(1, 2, 3, stride=2, padding=1), Square(), nn.ConvTranspose2d(2, 1, 2, stride=2)), image)
    export("pt-upsample-nearest", "Upsample, nearest", nn.Sequential(nn.Conv2d(1, 2, 3, stride=2, padding=1), nn.Upsample(scale_factor=2), nn.Conv2d(2, 1, 3, padding=1)), image)
    export("pt-upsample-bilinear", "Upsample, bilinear", nn.Sequential(nn.AvgPool2d(2), nn.Upsample(scale_factor=2, mode="bilinear"), nn.Flatten(), nn.Linear(64, 2)), image)
    export("pt-pixel-shuffle", "PixelShuffle (DepthToSpace)", nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.PixelShuffle(2), nn.Flatten(), nn.Linear(256, 2)), image)
    export("pt-pixel-unshuffle", "PixelUnshuffle (SpaceToDepth)", nn.Sequential(nn.PixelUnshuffle(2), nn.Conv2d(4, 2, 3), nn.Flatten(), nn.Linear(8, 2)), image)
    export("pt-squeeze-excite", "squeeze-and-excite with a quadratic gate, [C,H,W] times [C,1,1]",
           Fn(lambda m, x: m.head(torch.flatten((h := m.conv(x)) * m.gate(m.fc(F.adaptive_avg_pool2d(h, 1))), 1)),
              conv=nn.Conv2d(1, 3, 3), fc=nn.Conv2d(3, 3, 1), gate=Square(), head=nn.Linear(108, 2)), image)
    export("pt-residual", "residual block", Fn(lambda m, x: m.head(torch.flatten(m.act(m.b(m.act(m.a(x))) + x), 1)),
           a=nn.Conv2d(2, 2, 3, padding=1), b=nn.Conv2d(2, 2, 3, padding=1), act=Square(), head=nn.Linear(50, 2)), (2, 5, 5))
    export("pt-depthwise", "depthwise and grouped convolutions, dilation", nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), Square(), nn.Conv2d(4, 4, 3, groups=2, dilation=2), nn.Flatten(), nn.Linear(16, 2)), (4, 8, 8))
    export("pt-transpose", "Transpose, Reshape and Slice in the middle of a network", Fn(lambda m, x: m.b(m.a(x).reshape(-1, 4, 3).transpose(1, 2).reshape(-1, 12)[:, ::2]), a=nn.Linear(6, 12), b=nn.Linear(6, 2)), (6,))
    export("pt-concat-split", "Concat, Split, Pad", Fn(lambda m, x: m.b(torch.cat([F.pad(x[:, :3], (1, 1)), m.a(x) ** 2, x.chunk(2, 1)[1]], 1)), a=nn.Linear(6, 4), b=nn.Linear(12, 2)), (6,))
    export("pt-reduce", "ReduceSum and ReduceMean over several axes", Fn(lambda m, x: m.b(torch.cat([m.a(x).mean((2, 3)), m.a(x).sum(1).mean(1)], 1)), a=nn.Conv2d(1, 3, 3), b=nn.Linear(9, 2)), image)
    export("pt-einsum", "Einsum with a constant", Fn(lambda m, x: m.b(torch.flatten(torch.einsum("bchw,cd->bdhw", m.a(x), m.w), 1)), a=nn.Conv2d(1, 3, 3), b=nn.Linear(72, 2), w=nn.Parameter(torch.randn(3, 2))), image)
    export("pt-matmul", "MatMul along rows", Fn(lambda m, x: m.b(torch.flatten(x @ m.w, 1)), b=nn.Linear(24, 2), w=nn.Parameter(torch.randn(8, 3) / 3)), image)
    export("pt-tile-expand", "Expand and Tile", Fn(lambda m, x: m.b(torch.cat([m.a(x).repeat(1, 2), m.c(x).expand(-1, 4)], 1)), a=nn.Linear(6, 2), c=nn.Linear(6, 1), b=nn.Linear(8, 2)), (6,))
    export("pt-where-constant", "Where and a mask of constants", Fn(lambda m, x: m.b(x * torch.where(m.mask > 0, 1.0, 0.5)), mask=nn.Parameter(torch.tensor([1., -1, 1, -1, 1, 1])), b=nn.Linear(6, 2)), (6,))
    export("pt-where", "Where between two values, by a condition that is a constant", Fn(lambda m, x: m.b(torch.flatten(torch.where(m.mask > 0, h := m.a(x), h * h), 1)), a=nn.Conv2d(1, 2, 3), mask=nn.Parameter(torch.linspace(-1, 1, 36).reshape(6, 6).T), b=nn.Linear(72, 2)), image)
    export("pt-cumsum", "CumSum along a sequence", Fn(lambda m, x: m.b(torch.flatten(m.a(x).cumsum(2), 1)), a=nn.Conv1d(2, 3, 3), b=nn.Linear(18, 2)), (2, 8))
    integer_weights("pt-int8-weights", "weights in integers (DequantizeLinear of constants)", nn.Sequential(nn.Linear(6, 4), Square(), nn.Linear(4, 2)), (6,))
    export("pt-cubic", "activation of degree 3", nn.Sequential(nn.Linear(6, 5), Fn(lambda m, x: x + 0.1 * x**3), nn.Linear(5, 2)), (6,))
    export("pt-product", "product of two branches", Fn(lambda m, x: m.c(m.a(x) * m.b(x)), a=nn.Linear(6, 4), b=nn.Linear(6, 4), c=nn.Linear(4, 2)), (6,))
    export("pt-two-outputs", "two outputs", Fn(lambda m, x: (m.a(h := m.act(m.body(x))), m.b(h)), body=nn.Linear(6, 5), act=Square(), a=nn.Linear(5, 3), b=nn.Linear(5, 1)), (6,), outputs=("class_scores", "value"))
    export("pt-two-outputs-tails", "two outputs, a softmax and a sigmoid", Fn(lambda m, x: (torch.softmax(m.a(h := m.act(m.body(x))), 1), torch.sigmoid(m.b(h))), body=nn.Linear(6, 5), act=Square(), a=nn.Linear(5, 3), b=nn.Linear(5, 1)), (6,), outputs=("probabilities", "risk"))
    export("pt-two-inputs", "two vectors", Fn(lambda m, x, y: m.c(m.act(m.a(x) + m.b(y))), a=nn.Linear(6, 4), b=nn.Linear(3, 4), act=Square(), c=nn.Linear(4, 2)), (6,), (3,))
    export("pt-image-and-facts", "an image and a vector", Fn(lambda m, x, y: m.c(torch.cat([torch.flatten(m.act(m.a(x)), 1), y], 1)), a=nn.Conv2d(1, 2, 3, stride=2), act=Square(), c=nn.Linear(22, 2)), image, (4,))
    export("pt-image-output", "an image as the result (denoiser)", nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), Square(), nn.Conv2d(2, 1, 3, padding=1)), image)
    export("pt-conv3d", "Conv3d, batch normalization and average pool over volumes", nn.Sequential(nn.Conv3d(1, 2, 3, padding=1), nn.BatchNorm3d(2), Square(), nn.AvgPool3d(2), nn.Conv3d(2, 3, 2), nn.Flatten(), nn.Linear(3, 2)), (1, 4, 4, 4))
    export("pt-mixer", "MLP mixer: patches, and dense layers over tokens and over channels in turn", Mixer(), image)
    export("pt-mixer-dynamo", "the same through torch.export, opset 21", Mixer(), image, exporter=DYNAMO, opset=21)
    export("pt-mobile", "inverted residual: depthwise and pointwise convolutions with batch normalization", mobile(), (3, 8, 8))
    export("pt-unet-opset9", "U-Net: a skip around pooling and transposed convolution, opset 9", unet(), image, opset=9)
    export("pt-mask", "product with a constant for every pixel", Fn(lambda m, x: m.b(torch.flatten(m.a(x) * m.mask, 1)), a=nn.Conv2d(1, 2, 3, padding=1), mask=nn.Parameter(torch.linspace(0.2, 1, 64).reshape(1, 1, 8, 8)), b=nn.Linear(128, 2)), image)
    export("pt-two-towers", "two inputs, each with layers of its own, and the product of both", Fn(lambda m, x, y: (m.a(x) * m.b(y)).sum(1, keepdim=True), a=nn.Linear(5, 4), b=nn.Linear(7, 4)), (5,), (7,))
    export("pt-dict", "a dictionary of outputs, through torch.export", Fn(lambda m, x: {"scores": m.a(h := m.act(m.body(x))), "risk": torch.sigmoid(m.b(h))}, body=nn.Linear(6, 5), act=Square(), a=nn.Linear(5, 3), b=nn.Linear(5, 1)), (6,), exporter=DYNAMO, outputs=("scores", "risk"))

    attention = Fn(lambda m, x: m.o(torch.flatten(m.q(x) @ m.k(x).transpose(1, 2) @ m.v(x) / 3, 1)), q=nn.Linear(4, 3), k=nn.Linear(4, 3), v=nn.Linear(4, 4), o=nn.Linear(12, 2))
    export("pt-attention-linear", "attention without a softmax: products of encrypted matrices", attention, (3, 4))
    export("pt-bilinear", "Bilinear of two inputs, through torch.export", nn.Bilinear(4, 3, 2), (4,), (3,), exporter=DYNAMO)
    export("pt-resize-dynamo", "bilinear upsampling with aligned corners and bicubic, through torch.export", nn.Sequential(nn.Conv2d(1, 2, 3, stride=2), nn.Upsample(size=(5, 4), mode="bilinear", align_corners=True),
           Square(), nn.Upsample(scale_factor=2, mode="bicubic"), nn.Flatten(), nn.Linear(160, 2)), image, exporter=DYNAMO)
    export("pt-circular", "circular padding, an average pool in ceil mode", nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), Square(), nn.AvgPool2d(3, ceil_mode=True), nn.Flatten(), nn.Linear(18, 2)), image, exporter=DYNAMO)
    export("pt-unbatched", "Conv1d network exported for one sample, without a batch", Fn(lambda m, x: m.c(m.b(m.a(x)).reshape(-1)), a=nn.Conv1d(3, 4, 5, stride=2), b=Square(), c=nn.Linear(56, 2)), (3, 32), batched=False)
    export("pt-bytes", "pixels from 0 to 255 as the input, scaled by the model", Fn(lambda m, x: m.c(torch.flatten(m.b(m.a(x.float() / 255 - 0.5)), 1)), a=nn.Conv2d(1, 2, 3, stride=2), b=Square(), c=nn.Linear(18, 2)), image, pixels=True)
    export("pt-scalar", "one number without dimensions as the result", Fn(lambda m, x: m.b(m.a(x)).mean(), a=nn.Conv2d(1, 2, 3), b=Square()), image)
    plain = lambda x: F.batch_norm(x, torch.zeros(x.shape[1]), torch.ones(x.shape[1]))
    export("pt-batch-norms", "batch normalization that was never trained, of two widths", Fn(lambda m, x: m.b(plain(m.a(plain(x)) ** 2)), a=nn.Linear(6, 5), b=nn.Linear(5, 2)), (6,))
    export("pt-assign", "assignment to a part of a tensor (ScatterND), indexing by lists (GatherND)", Fn(assigned, a=nn.Conv2d(1, 2, 3), b=nn.Linear(4, 2)), image, exporter=DYNAMO)

    approximated = {"expect": "approximated"}
    for key, activation in {"relu": nn.ReLU, "leaky-relu": nn.LeakyReLU, "relu6": nn.ReLU6, "silu": nn.SiLU, "gelu": nn.GELU,
                            "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "softplus": nn.Softplus, "hardswish": nn.Hardswish,
                            "elu": nn.ELU, "mish": nn.Mish}.items():
        exporter = DYNAMO if key in ("gelu", "silu", "tanh") else SCRIPT
        export(f"pt-act-{key}", f"MLP with {activation.__name__}", mlp(activation), (6,), exporter=exporter, **approximated)
    export("pt-act-abs", "MLP with an absolute value", mlp(lambda: Fn(lambda m, x: x.abs())), (6,), **approximated)
    export("pt-act-where", "MLP with torch.where(x > 0, x, 0.1 x)", mlp(lambda: Fn(lambda m, x: torch.where(x > 0, x, 0.1 * x))), (6,), **approximated)
    export("pt-cnn-relu", "CNN with ReLU", cnn(nn.ReLU), image, exporter=DYNAMO, **approximated)
    export("pt-se-sigmoid", "squeeze-and-excite with a sigmoid gate",
           Fn(lambda m, x: m.head(torch.flatten((h := m.conv(x)) * torch.sigmoid(m.fc(F.adaptive_avg_pool2d(h, 1))), 1)),
              conv=nn.Conv2d(1, 3, 3), fc=nn.Conv2d(3, 3, 1), head=nn.Linear(108, 2)), image, **approximated)

    refused = {"expect": "refused"}
    pool = nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 2))
    export("pt-max-pool", "max pooling", pool, image, because="a maximum is not a polynomial", remedy="use average pooling and retrain", **refused)
    export("pt-layer-norm", "LayerNorm", nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), nn.Linear(4, 2)), (6,), because="statistics", remedy="use batch normalization", **refused)
    export("pt-group-norm", "GroupNorm", nn.Sequential(nn.Conv2d(1, 2, 3), nn.GroupNorm(1, 2), nn.Flatten(), nn.Linear(72, 2)), image, because="statistics of the encrypted value", remedy="use batch normalization", **refused)
    heads = Fn(lambda m, x: m.o(torch.flatten(torch.softmax(m.q(x) @ m.k(x).transpose(1, 2), -1) @ m.v(x), 1)), q=nn.Linear(4, 4), k=nn.Linear(4, 4), v=nn.Linear(4, 4), o=nn.Linear(12, 2))
    export("pt-attention", "attention with a softmax inside", heads, (3, 4), because="used inside the network", remedy="train without the softmax", **refused)
    lstm = Fn(lambda m, x: m.o(m.r(x)[0][:, -1]), r=nn.LSTM(3, 4, batch_first=True), o=nn.Linear(4, 2))
    gru = Fn(lambda m, x: m.o(m.r(x)[0][:, -1]), r=nn.GRU(3, 4, batch_first=True), o=nn.Linear(4, 2))
    export("pt-gru", "GRU", gru, (5, 3), because="sigmoids and tangents", remedy="use Conv1d in its place", **refused)
    quantized("pt-int8", "a network in integers (QuantizeLinear)", nn.Sequential(nn.Linear(6, 4), Square(), nn.Linear(4, 2)), (6,), because="it rounds to integers", remedy="export the model before it is quantized", **refused)
    export("pt-lstm", "LSTM", lstm, (5, 3), because="sigmoids and tangents", remedy="use Conv1d in its place", **refused)


if __name__ == "__main__":
    main()
