"""Fine-tuning after a conversion, the noise it can be done with, and the export of the result."""

import json
import math

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: fine-tuning tests skipped")

from networks import Functional, Residual, stirred  # noqa: E402
from torch import nn  # noqa: E402

from fhec_training import Noise, accuracy, convert, export, fine_tune  # noqa: E402
from fhec_training.activation import PolyActivation, activations, draw, horner  # noqa: E402
from fhec_training.noise import _groups  # noqa: E402
from fhec_training.tuning import TrainingDiverged, settle_batch_norms  # noqa: E402


class Batches(list):
    """A loader: batches of (inputs, labels), in the same order each time."""


def bars(n=180, size=(12, 20), seed=0):
    """Class k is a bright bar across the k-th third of a noisy, non-square picture."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 3
    pictures = 0.3 * torch.randn(n, 1, *size, generator=generator)
    for index, label in enumerate(labels.tolist()):
        pictures[index, 0, 4 * label + 1 : 4 * label + 3] += 2.0
    return Batches(zip(pictures.split(20), labels.split(20)))


@pytest.fixture(scope="module")
def tuned():
    """A functional network: trained with ReLU, converted, fine-tuned; with its accuracies."""
    torch.manual_seed(0)
    loader, model = bars(), Functional()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(4):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    before = accuracy(model, bars(60, seed=1))
    converted = convert(model, loader, max_pool="average")
    lines = []
    history = fine_tune(converted, loader, epochs=3, report=lines.append)
    return {"model": converted, "relu": before, "history": history, "lines": lines}


def test_a_converted_network_learns_back_what_it_knew(tuned):
    assert tuned["relu"] == 1.0
    assert accuracy(tuned["model"], bars(60, seed=1)) == 1.0
    assert [epoch.epoch for epoch in tuned["history"]] == [1, 2, 3] and tuned["history"] == tuned["lines"]
    assert not tuned["model"].training
    assert all(a.clip == a.margin == a.c and a.blend == 1 and a.noise is None and not a.excesses for a in activations(tuned["model"]).values())


def test_a_part_of_an_epoch_is_that_many_steps():
    seen = []
    loader = Batches(bars()[:4])
    model = convert(nn.Sequential(nn.Flatten(), nn.Linear(240, 3), nn.ReLU()))
    fine_tune(model, loader, epochs=1.5, loss=lambda scores, labels: seen.append(1) or nn.functional.cross_entropy(scores, labels), report=print)
    assert len(seen) == 6


def test_polynomials_come_in_gradually_and_clipping_loosens():
    seen = []
    model = convert(nn.Sequential(nn.Flatten(), nn.Linear(240, 3), nn.ReLU()), c=1.0)
    model[2].register_forward_pre_hook(lambda a, _: seen.append((round(a.blend, 3), a.clip, a.margin)))
    fine_tune(model, Batches(bars()[:4]), epochs=1, gradual=0.5, clip_until=0.75, late_clip=3.0, margin=0.5, report=print)
    assert seen[:4] == [(0.0, 1.0, 0.5), (0.5, 1.0, 0.5), (1.0, 1.0, 0.5), (1.0, 3.0, 0.5)]


def test_without_blend_an_activation_is_the_function_it_stands_for():
    activation = PolyActivation()
    z = torch.linspace(-5, 5, 11)
    activation.blend = 0.0
    assert torch.equal(activation(z), torch.relu(z))
    activation.blend = 0.25
    torch.testing.assert_close(activation(z), 0.75 * torch.relu(z) + 0.25 * horner(activation.coefficients, z.clamp(-2, 2)))
    torch.testing.assert_close(activation.eval()(z), horner(activation.coefficients, z))


def test_statistics_settle_on_the_mean_of_the_data():
    model = convert(nn.Sequential(nn.BatchNorm2d(1), nn.ReLU()))
    loader = bars()
    settle_batch_norms(model, loader)
    everything = torch.cat([inputs for inputs, _ in loader])
    torch.testing.assert_close(model[0].running_mean, everything.mean().view(1))
    torch.testing.assert_close(model[0].running_var, torch.stack([inputs.var() for inputs, _ in loader]).mean().view(1))
    assert model[0].momentum == 0.1 and model.training


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(ValueError, match="convert it first"):
        fine_tune(nn.Linear(2, 2), bars())
    model = convert(nn.Sequential(nn.Flatten(), nn.Linear(240, 3), nn.ReLU()))
    with pytest.raises(ValueError, match="epochs is a positive number, not 0"):
        fine_tune(model, bars(), epochs=0)
    with torch.no_grad():
        model[1].weight.fill_(math.nan)
    with pytest.raises(TrainingDiverged, match="step 1 of 9: lower lr"):
        fine_tune(model, bars(), epochs=1)


def test_noise_of_bits_is_that_far_below_the_range_of_each_channel():
    model = nn.Sequential(PolyActivation(c=4.0))
    constant, slope, square = model[0].coefficients
    torch.manual_seed(0)
    noise = Noise.of_bits(7)
    levels = torch.tensor([0.0, 2.0, -3.0])
    z = levels.view(1, 3, 1).repeat(2, 1, 50_000)
    with noise.added_to(model):
        deviations = model(z).std((0, 2))
        assert torch.equal(model.eval()(z)[:, 0], torch.full((2, 50_000), constant)), "only in training"
    # A little noise moves the polynomial by its slope, and its range is that of the square it is compiled to.
    expected = (slope + 2 * square * levels).abs() * (levels + slope / (2 * square)).abs() / 128
    assert deviations.tolist() == pytest.approx(expected.tolist(), rel=0.03)
    assert model[0].noise is None
    scores = torch.zeros(100_000)
    scores[0] = -8.0
    assert (noise.on_scores(scores) - scores).std().item() == pytest.approx(8 / 128, rel=0.02)


def test_noise_of_two_images_is_uncorrelated():
    torch.manual_seed(0)
    drawn = torch.stack([draw(torch.zeros(8, 2, 3)) for _ in range(4000)]).flatten(1)
    assert (torch.corrcoef(drawn.T) - torch.eye(48)).abs().max() < 0.08
    assert drawn.std(0).tolist() == pytest.approx([1.0] * 48, abs=0.05)


def test_scaled_noise_has_deviations_times_the_factor():
    assert Noise.of_bits(6).scaled(0.5) == Noise.of_bits(7)
    assert Noise({"act": 0.5}, 2.0).scaled(0.25) == Noise({"act": 0.125}, 0.5)


def test_training_with_noise_makes_a_network_that_withstands_it():
    def loss_under_noise(noise):
        torch.manual_seed(3)
        model = convert(nn.Sequential(nn.Flatten(), nn.Linear(240, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)))
        fine_tune(model, bars(), epochs=4, lr=0.05, noise=noise, gradual=0, report=lambda _: None)
        inputs, labels = (torch.cat(parts) for parts in zip(*bars(120, seed=5)))
        with torch.no_grad(), Noise.of_bits(1.0).added_to(model):
            activations(model)["3"].train()
            losses = [nn.functional.cross_entropy(model(inputs), labels).item() for _ in range(20)]
        return sum(losses) / len(losses)

    assert loss_under_noise(1.0) < 0.9 * loss_under_noise(None)


def test_a_report_gives_the_variance_of_the_scores_that_it_predicts():
    torch.manual_seed(1)
    pictures = torch.randn(64, 3, 10, 6)
    model = convert(stirred(Residual(), pictures).eval(), pictures, quantile=1.0)
    # Six uses of four activations: each block uses its own twice.
    shares = [0.1, 0.2, 0.0, 0.15, 0.0, 0.05, 0.0, 0.1, 0.0, 0.1, 0.0, 0.1, 0.0, 0.2]
    products = [0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    layers = [{"name": "x", "ciphertext_products": p, "error_share": s} for p, s in zip(products, shares)]
    report = {"predicted_error": 1e-4, "layers": layers}
    noise = Noise.of_report(report, model, pictures)
    assert set(noise.inputs) == set(activations(model))
    assert noise.scores == pytest.approx(1e-4 * math.sqrt(0.2))
    with torch.no_grad():
        clean = model(pictures).double()
        for activation in activations(model).values():
            activation.train()
            activation.clip = math.inf
        with noise.added_to(model):
            noisy = torch.stack([noise.on_scores(model(pictures)) for _ in range(30)]).double()
    assert (noisy - clean).square().mean().sqrt().item() == pytest.approx(1e-4, rel=0.15)


def test_shares_go_to_the_activation_that_follows():
    assert _groups([(False, 0.1), (False, 0.2), (True, 0.05), (False, 0.3), (True, 0.0), (False, 0.35)], 2) == pytest.approx([0.3, 0.35, 0.35])
    # Degree 3 and 4 multiply twice.
    assert _groups([(False, 0.5), (True, 0.1), (True, 0.1), (False, 0.3)], 1) == pytest.approx([0.5, 0.5])


def test_a_report_of_another_network_is_refused(tmp_path):
    model = convert(nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2), nn.ReLU()))
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"predicted_error": 0.1, "layers": [{"ciphertext_products": 1, "error_share": 1.0}]}))
    with pytest.raises(ValueError, match="1 layers that multiply ciphertexts, the network uses activations 2 times"):
        Noise.of_report(report, model, torch.ones(2, 1, 2, 2))
    with pytest.raises(ValueError, match="not a report"):
        Noise.of_report({"layers": []}, model, torch.ones(2, 1, 2, 2))
    with pytest.raises(ValueError, match="another network"), Noise({"elsewhere": 1.0}).added_to(model):
        pass


@pytest.mark.parametrize("which", ["tuned", "residual"])
def test_export_gives_what_the_network_gives(which, tuned, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: export test skipped")
    onnx = pytest.importorskip("onnx")
    if which == "tuned":
        model, pictures, labels, mean, std = tuned["model"], bars(6, seed=7)[0][0], ["top", "middle", "bottom"], [0.1], [0.5]
    else:
        pictures = torch.randn(6, 3, 10, 6, generator=torch.Generator().manual_seed(0))
        model = convert(stirred(Residual(), pictures), pictures)
        labels, mean, std = list("abcde"), [0.1, 0.2, 0.3], [0.5]
    path = str(tmp_path / "model.onnx")
    export(model, pictures, path, labels=labels, mean=mean, std=std)
    session = onnxruntime.InferenceSession(path)
    assert session.get_inputs()[0].shape == [1, *pictures.shape[1:]]
    for picture in pictures.split(1):
        (scores,) = session.run(None, {"image": picture.numpy()})
        torch.testing.assert_close(torch.from_numpy(scores), model(picture).detach(), rtol=1e-4, atol=1e-4)
    proto = onnx.load(path)
    metadata = {entry.key: json.loads(entry.value) for entry in proto.metadata_props}
    assert metadata == {"fhec.labels": labels, "fhec.mean": mean, "fhec.std": std}
    operations = {node.op_type for node in proto.graph.node}
    assert {"Conv", "Mul", "Add"} <= operations
    assert not operations & {"Relu", "MaxPool", "Clip", "Dropout", "Where", "RandomNormalLike"}
    assert [entry.name for entry in (tmp_path).iterdir()] == ["model.onnx"]


def test_metadata_that_the_compiler_would_ignore_is_refused(tmp_path):
    model = convert(nn.Sequential(nn.Flatten(), nn.Linear(240, 3), nn.ReLU()))
    path = tmp_path / "model.onnx"
    for words, keywords in (
        ("2 labels for 3 scores", {"labels": ["a", "b"]}),
        ("come together", {"mean": [0.5]}),
        ("1 channels, but there are 3 means", {"mean": [0.5] * 3, "std": [0.5]}),
        ("deviations are positive", {"mean": [0.5], "std": [0.0]}),
    ):
        with pytest.raises(ValueError, match=words):
            export(model, (1, 12, 20), path, **keywords)
    with pytest.raises(ValueError, match=r"one tensor of scores, \[1, classes\], but gives \[1, 4, 5, 5\]"):
        export(nn.Conv2d(1, 4, 3), (1, 7, 7), path)
    with pytest.raises(ValueError, match="must be a batch"):
        export(model, torch.ones(1, 12, 20), path)
    assert not path.exists()
