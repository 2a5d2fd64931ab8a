"""Libraries without compiled code: what fails shows when they are imported or run."""

from __future__ import annotations

from benchmarks.libraries.library import Change, Expected, Library

PLAIN = "import paddle\n\npaddle.enable_compat()\n"
RUN = "python -m pytest -q {}"

CRF = (
    "import torch\n"
    "from torchcrf import CRF\n"
    "\n"
    "\n"
    "def test_likelihood_of_a_padded_batch():\n"
    "    torch.manual_seed(0)\n"
    "    model = CRF(5)\n"
    "    emissions = torch.randn(3, 2, 5)\n"
    "    tags = torch.tensor([[0, 1], [2, 4], [3, 1]])\n"
    "    mask = torch.tensor([[1, 1], [1, 1], [1, 0]], dtype=torch.uint8)\n"
    "    loss = -model(emissions, tags, mask=mask)\n"
    "    loss.backward()\n"
    "    assert model.transitions.grad.shape == (5, 5)\n"
    "    assert [len(path) for path in model.decode(emissions, mask=mask)] == [3, 2]\n"
)

GEOMLOSS = (
    "import pytest\n"
    "import torch\n"
    "from geomloss import SamplesLoss\n"
    "\n"
    "\n"
    "@pytest.mark.parametrize('name', ['sinkhorn', 'gaussian', 'energy'])\n"
    "def test_gradient_of_a_loss_between_samples(name):\n"
    "    torch.manual_seed(0)\n"
    "    x = torch.rand(40, 3, requires_grad=True)\n"
    "    y = torch.rand(50, 3)\n"
    "    loss = SamplesLoss(name, p=2, blur=0.05, backend='tensorized')(x, y)\n"
    "    (gradient,) = torch.autograd.grad(loss, [x])\n"
    "    assert torch.isfinite(gradient).all()\n"
)

ENTMAX = (
    "import torch\n"
    "from entmax import Entmax15Loss, entmax15, entmax_bisect, sparsemax\n"
    "\n"
    "\n"
    "def test_probabilities():\n"
    "    x = torch.tensor([[-2.0, 0.0, 0.5], [1.0, 2.0, 3.0]], requires_grad=True)\n"
    "    for transform in (sparsemax, entmax15, entmax_bisect):\n"
    "        y = transform(x, dim=-1)\n"
    "        assert torch.allclose(y.sum(-1), torch.ones(2))\n"
    "        y[:, 0].sum().backward()\n"
    "\n"
    "\n"
    "def test_loss():\n"
    "    x = torch.tensor([[-2.0, 0.0, 0.5], [1.0, 2.0, 3.0]], requires_grad=True)\n"
    "    Entmax15Loss()(x, torch.tensor([1, 2])).backward()\n"
    "    assert x.grad.shape == x.shape\n"
)

INTERPOL = (
    "import interpol\n"
    "import torch\n"
    "\n"
    "\n"
    "def test_pull_by_the_identity():\n"
    "    image = torch.arange(36.0).reshape(1, 1, 6, 6)\n"
    "    grid = interpol.identity_grid([6, 6])[None]\n"
    "    out = interpol.grid_pull(image, grid, interpolation=1, bound='dct2', extrapolate=True)\n"
    "    assert torch.allclose(out, image)\n"
)

TORCHDIFFEQ = (
    "import torch\n"
    "from torchdiffeq import odeint, odeint_adjoint\n"
    "\n"
    "\n"
    "class Field(torch.nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.linear = torch.nn.Linear(2, 2)\n"
    "\n"
    "    def forward(self, t, y):\n"
    "        return self.linear(y)\n"
    "\n"
    "\n"
    "def test_decay():\n"
    "    t = torch.linspace(0.0, 1.0, 5)\n"
    "    y = odeint(lambda t, y: -y, torch.tensor([1.0, 2.0]), t)\n"
    "    assert torch.allclose(y[-1], torch.tensor([0.367879, 0.735759]), atol=1e-4)\n"
    "\n"
    "\n"
    "def test_adjoint():\n"
    "    field = Field()\n"
    "    odeint_adjoint(field, torch.tensor([1.0, 2.0]), torch.linspace(0.0, 1.0, 5)).sum().backward()\n"
    "    assert field.linear.weight.grad.shape == (2, 2)\n"
)

X_TRANSFORMERS = (
    "import torch\n"
    "from x_transformers import Decoder, TransformerWrapper\n"
    "\n"
    "\n"
    "def test_logits():\n"
    "    torch.manual_seed(0)\n"
    "    layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=8)\n"
    "    model = TransformerWrapper(num_tokens=32, max_seq_len=16, attn_layers=layers)\n"
    "    assert model(torch.randint(0, 32, (1, 8))).shape == (1, 8, 32)\n"
)

TORCHMETRICS = (
    "import torch\n"
    "import torchmetrics\n"
    "\n"
    "\n"
    "def test_accuracy():\n"
    "    metric = torchmetrics.classification.MulticlassAccuracy(num_classes=3, average='micro')\n"
    "    metric.update(torch.tensor([0, 1, 2, 1]), torch.tensor([0, 1, 1, 1]))\n"
    "    assert metric.compute() == 0.75\n"
)

KORNIA = (
    "import kornia\n"
    "import torch\n"
    "\n"
    "\n"
    "def test_gray_and_blur():\n"
    "    image = torch.rand(1, 3, 8, 8)\n"
    "    gray = kornia.color.rgb_to_grayscale(image)\n"
    "    assert kornia.filters.gaussian_blur2d(gray, (3, 3), (1.0, 1.0)).shape == (1, 1, 8, 8)\n"
)

EINOPS = (
    "import torch\n"
    "from einops import rearrange, reduce, repeat\n"
    "\n"
    "\n"
    "def test_shapes():\n"
    "    x = torch.arange(24.0).reshape(2, 3, 4)\n"
    "    assert rearrange(x, 'a b c -> (a c) b').shape == (8, 3)\n"
    "    assert reduce(x, 'a b c -> b', 'max').tolist() == [15.0, 19.0, 23.0]\n"
    "    assert repeat(x, 'a b c -> a b c k', k=2).shape == (2, 3, 4, 2)\n"
)

EINOPS_AMIN = (
    "import torch\n"
    "from einops import reduce\n"
    "\n"
    "\n"
    "def test_gradient_of_the_minimum():\n"
    "    torch.manual_seed(0)\n"
    "    x = torch.rand(2, 3, 4, 5, 6, requires_grad=True)\n"
    "    reduce(x, 'a b c d e -> a c e', 'min').sum().backward()\n"
    "    assert x.grad.sum().item() == 2 * 4 * 6\n"
)

# einops asks its backends for Paddle before that for PyTorch, and Paddle is loaded: it would not use PyTorch's API.
TORCH_BACKEND = (Change("einops/_backends.py", 'framework_name = "paddle"', 'framework_name = "not to be used"'),)


def _scoped(*names: str) -> str:
    """The migration of the named modules alone."""
    return f"import paddle\n\npaddle.enable_compat(scope={{{', '.join(map(repr, names))}}})\n"


def _case(
    name: str,
    project: str,
    version: str,
    test: str,
    expected: Expected,
    needs: tuple[str, ...] = (),
    conftest: str = PLAIN,
    changes: tuple[Change, ...] = (),
) -> Library:
    path = f"tests/test_{name.replace('-', '_')}.py"
    files = {path: test, "tests/conftest.py": conftest}
    return Library(name, project, version, RUN.format(path), expected, needs=needs, files=files, changes=changes)


LIBRARIES = (
    _case("pytorch-crf", "pytorch-crf", "0.7.2", CRF, Expected("run")),
    _case("geomloss", "geomloss", "0.3.1", GEOMLOSS, Expected("run"), ("scipy",), _scoped("geomloss", "test_geomloss")),
    _case("entmax", "entmax", "1.3", ENTMAX, Expected("run"), (), _scoped("entmax", "test_entmax")),
    _case("torch-interpol", "torch-interpol", "0.3.0", INTERPOL, Expected("run")),
    _case("torchdiffeq", "torchdiffeq", "0.2.5", TORCHDIFFEQ, Expected("import"), ("scipy",)),
    _case(
        "x-transformers",
        "x-transformers",
        "2.31.10",
        X_TRANSFORMERS,
        Expected("import"),
        ("einops==0.8.2", "einx==0.4.3", "frozendict", "loguru", "torch-einops-utils"),
    ),
    _case("torchmetrics", "torchmetrics", "1.9.0", TORCHMETRICS, Expected("import"), ("lightning-utilities",)),
    _case("kornia", "kornia", "0.9.0", KORNIA, Expected("import"), ("kornia-rs",), _scoped("kornia", "test_kornia")),
    _case("einops", "einops", "0.8.2", EINOPS, Expected(exit_code=3)),
    # Later stages.
    _case("pytorch-crf-bool", "pytorch-crf", "0.7.2", CRF.replace("torch.uint8", "torch.bool"), Expected("run")),
    _case(
        "torch-interpol-dtype",
        "torch-interpol",
        "0.3.0",
        INTERPOL,
        Expected("run"),
        changes=(Change("interpol/api.py", "input.dtype.is_floating_point", "input.is_floating_point()"),),
    ),
    _case(
        "torchdiffeq-vjp",
        "torchdiffeq",
        "0.2.5",
        TORCHDIFFEQ,
        Expected("run"),
        ("scipy",),
        changes=(Change("torchdiffeq/_impl/odeint.py", "from torch.autograd.functional import vjp", "vjp = None"),),
    ),
    _case(
        "torchmetrics-unused",
        "torchmetrics",
        "1.9.0",
        TORCHMETRICS,
        Expected("import"),
        ("lightning-utilities",),
        changes=(Change("torchmetrics/metric.py", "    @torch.jit.unused\n", "", 2),),
    ),
    _case("einops-amin", "einops", "0.8.2", EINOPS_AMIN, Expected("run"), changes=TORCH_BACKEND),
)
