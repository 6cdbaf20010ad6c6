"""A whole run on a made-up data set, its resumption, its parts, and the export."""

import json
import math
import struct

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: training tests skipped")

from fhec_training import checkpoint, data, export, train  # noqa: E402
from fhec_training.activation import activations  # noqa: E402
from fhec_training.parallel import Group  # noqa: E402
from fhec_training.schedule import Clock, one_cycle  # noqa: E402


@pytest.fixture
def stripes(tmp_path):
    """An idx data set like MNIST: class k is a bright row at height 2k + 4, on noise."""
    generator = torch.Generator().manual_seed(1)
    for stem, n in (("train", 600), ("t10k", 100)):
        labels = torch.arange(n) % 10
        images = torch.randint(0, 60, (n, 28, 28), generator=generator)
        images[torch.arange(n), 2 * labels + 4] = 250
        header = struct.pack(">4I", 0x803, n, 28, 28)
        (tmp_path / f"{stem}-images-idx3-ubyte").write_bytes(header + bytes(images.flatten().tolist()))
        (tmp_path / f"{stem}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, n) + bytes(labels.tolist()))
    return tmp_path


def options(folder, *more):
    base = ["--model", "lenet", "--data", "mnist", "--data-dir", str(folder), "--out", str(folder / "run")]
    return train.parse([*base, "--batch-size", "50", "--padding", "0", "--lr", "0.05", *more])


def finished(run_options):
    run_options.out.mkdir(exist_ok=True)
    run = train.Run(run_options, Group(1))
    run.go()
    return run


def test_a_run_learns_and_leaves_checkpoint_log_and_plots(stripes):
    run = finished(options(stripes, "--epochs", "6", "--zeta", "0.01"))
    rows = (stripes / "run" / "log.csv").read_text().splitlines()
    assert len(rows) == 7
    assert float(rows[-1].split(",")[8]) > 0.9
    assert run.epoch == 6
    assert {p.name for p in (stripes / "run").iterdir()} == {"checkpoint.pt", "log.csv", "accuracy.png", "ranges.png"}


def test_a_run_goes_on_from_its_checkpoint(stripes):
    """An interrupted run takes the same steps as an uninterrupted one."""
    whole = finished(options(stripes, "--epochs", "2"))
    run_options = options(stripes, "--epochs", "2")
    run_options.out = stripes / "parts"
    run_options.out.mkdir()
    train.Run(run_options, Group(1)).train_epoch()
    second = train.Run(run_options, Group(1))
    assert second.epoch == 1
    second.go()
    for a, b in zip(whole.network.state_dict().values(), second.network.state_dict().values()):
        torch.testing.assert_close(a, b)


def test_batch_norms_start_where_they_are_told_and_zeta_without_warm_up(stripes):
    run_options = options(stripes, "--epochs", "1", "--zeta", "0.5", "--bn-start", "0.4", "--no-warm-up")
    run_options.out.mkdir()
    run = train.Run(run_options, Group(1))
    norms = [m for m in run.network.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert norms and all((norm.weight == 0.4).all() for norm in norms)
    run.go()
    row = (stripes / "run" / "log.csv").read_text().splitlines()[-1]
    assert float(row.split(",")[4]) == 0.5
    run_options.out = stripes / "warm"
    run_options.warm_up = True
    finished(run_options)
    row = (stripes / "warm" / "log.csv").read_text().splitlines()[-1]
    assert float(row.split(",")[4]) == 0.5 / 100


def test_a_run_trains_for_the_noise_it_is_told(stripes):
    report = {"predicted_error": 0.5, "layers": [{"ciphertext_products": k % 2, "error_share": 0.2} for k in range(7)]}
    (stripes / "report.json").write_text(json.dumps(report))
    for name, more in (("bits", ["--noise-bits", "4"]), ("report", ["--noise-report", str(stripes / "report.json")])):
        run_options = options(stripes, "--epochs", "1", *more)
        run_options.out = stripes / name
        run = finished(run_options)
        if name == "bits":
            assert run.noise.bits == 4
        else:
            assert set(run.noise.inputs) == set(activations(run.network)) and run.noise.scores == pytest.approx(0.5 * 0.4**0.5)
        assert all(a.noise is None for a in activations(run.network).values())


def test_noise_rises_in_the_first_part_of_a_run(stripes):
    run = train.Run(options(stripes, "--epochs", "1", "--noise-bits", "4", "--noise-rise", "0.5"), Group(1))
    run.noise = run.noise_of_epoch()
    found = []
    for run.agreed_progress in (0.0, 0.25, 0.5, 1.0):
        found.append(run.noise_now().bits)
    assert found == pytest.approx([4 + math.log2(10), 5, 4, 4])


def test_a_run_starts_from_the_weights_of_a_checkpoint_or_of_an_exported_network(stripes):
    first = finished(options(stripes, "--epochs", "1"))
    onnx = stripes / "first.onnx"
    export(first.network, data.DATASETS["mnist"], onnx)
    for file in (first.path, onnx):
        run_options = options(stripes, "--epochs", "1", "--start", str(file), "--bn-start", "7")
        run_options.out = stripes / "second"
        started = train.Run(run_options, Group(1)).network.state_dict()
        for name, tensor in first.network.state_dict().items():
            assert name.endswith("num_batches_tracked") or torch.equal(started[name], tensor), f"{file}: {name}"
    wider = options(stripes, "--epochs", "1", "--start", str(onnx), "--width", "2")
    wider.out = stripes / "wider"
    with pytest.raises(SystemExit, match=r"0.weight has shape \[8, 1, 5, 5\] in .* and \[16, 1, 5, 5\] in this network"):
        train.Run(wider, Group(1))
    other = options(stripes, "--epochs", "1", "--start", str(onnx))
    other.model, other.out = "resnet20", stripes / "other"
    with pytest.raises(SystemExit, match="has no weights conv.weight: it is another network"):
        train.Run(other, Group(1))


def test_a_checkpoint_of_another_network_is_refused(stripes):
    finished(options(stripes, "--epochs", "1"))
    with pytest.raises(SystemExit, match="another network"):
        train.Run(options(stripes, "--epochs", "2", "--width", "2"), Group(1))


def test_seeds_give_different_members(stripes):
    runs = [train.Run(options(stripes, "--seed", str(seed)), Group(1)) for seed in (0, 1)]
    assert not torch.equal(runs[0].network[0].weight, runs[1].network[0].weight)


def test_time_budget_ends_a_run_annealed():
    clock = Clock(epochs=1000, minutes=1, seconds_before=45)
    assert clock.progress(1) == pytest.approx(0.75, abs=1e-3)
    assert Clock(epochs=1000, minutes=1, seconds_before=61).progress(1) == 1.0
    assert one_cycle(1.0, 0.2) == pytest.approx(0)


def test_one_cycle_peaks_after_its_rise():
    assert max(one_cycle(i / 100, 0.3) for i in range(101)) == pytest.approx(one_cycle(0.2, 0.3)) == pytest.approx(0.3)


def test_augmentation_shifts_and_mirrors_without_touching_pixels():
    images = torch.zeros(64, 1, 9, 9, dtype=torch.uint8)
    images[:, 0, 4, 5] = 7
    moved = data.augment(images, 2, True, torch.Generator().manual_seed(0))
    assert moved.shape == images.shape
    assert (moved == 7).flatten(1).sum(1).tolist() == [1] * 64
    columns = (moved == 7).nonzero()[:, 3]
    assert set(columns.tolist()) == set(range(1, 8))  # 5 +- 2 mirrored around 4


def test_processes_share_a_batch_without_overlap():
    split = data.Split(torch.zeros(20, 1, 2, 2), torch.zeros(20))
    parts = [list(data.batches(split, 6, torch.Generator().manual_seed(3), (rank, 2))) for rank in (0, 1)]
    assert [len(p) for p in parts] == [3, 3]
    assert len(set(torch.cat(parts[0] + parts[1]).tolist())) == 18


def test_export_round_trip_gives_the_same_logits_and_says_how_to_prepare_images(stripes):
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: export test skipped")
    onnx = pytest.importorskip("onnx")
    from fhec_training.onnx_export import export

    finished(options(stripes, "--epochs", "1"))
    recipe, network, _ = checkpoint.load(stripes / "run" / "checkpoint.pt")
    description = data.DATASETS[recipe.data]
    path = stripes / "model.onnx"
    export(network, description, path)

    image = description.normalize(data.load("mnist", stripes, "test").images[:1])
    (logits,) = onnxruntime.InferenceSession(path).run(None, {"image": image.numpy()})
    torch.testing.assert_close(torch.from_numpy(logits), network(image).detach(), rtol=1e-4, atol=1e-4)

    model = onnx.load(path)
    metadata = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    assert metadata == {"fhec.labels": list("0123456789"), "fhec.mean": [0.1307], "fhec.std": [0.3081]}
    operations = [node.op_type for node in model.graph.node if node.op_type != "Constant"]
    assert set(operations) == {"Conv", "BatchNormalization", "Mul", "Add", "Reshape", "Gemm"}
    assert operations.count("BatchNormalization") == 3
