"""How each library's loop is driven: the library's own code does the step, ours hands it a model and batches."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutants.training.setting import Setting


@dataclass(frozen=True)
class Loop:
    """A loop of ``library``, in the module ``module``: ``run`` trains through all batches."""

    library: str
    module: str
    name: str
    run: Callable[[Setting], None]

    @property
    def target(self) -> str:
        """The name of what is run."""
        return f"{self.module}.{self.name}"


def _ignite(setting: Setting) -> None:
    from ignite.engine import supervised_training_step_amp

    step = supervised_training_step_amp(
        setting.model, setting.optimizer, setting.loss, device="cuda", scaler=setting.scaler
    )
    for number, batch in enumerate(setting.batches):
        step(types.SimpleNamespace(state=types.SimpleNamespace(iteration=number + 1)), batch)  # type: ignore[arg-type]


def _timm(setting: Setting) -> None:
    from timm.utils.cuda import NativeScaler

    scaler = NativeScaler()
    scaler._scaler = setting.scaler
    for inputs, targets in setting.batches:
        with torch.autocast("cuda"):
            loss = setting.loss(setting.model(inputs), targets)
        setting.optimizer.zero_grad()
        scaler(loss, setting.optimizer, clip_grad=setting.norm, parameters=setting.model.parameters())


def _monai(setting: Setting) -> None:
    from monai.engines import SupervisedTrainer

    trainer = SupervisedTrainer(
        device=torch.device("cuda"),
        max_epochs=1,
        train_data_loader=[{"image": x, "label": y} for x, y in setting.batches],  # type: ignore[arg-type]
        network=setting.model,
        optimizer=setting.optimizer,
        loss_function=setting.loss,
        amp=True,
        decollate=False,
    )
    trainer.run()


def _spikingjelly(setting: Setting) -> None:
    from spikingjelly.activation_based.examples.common.train_classify import Trainer

    arguments: Any = types.SimpleNamespace(
        execution_mode="eager",
        disable_pinmemory=True,
        clip_grad_norm=setting.norm,
        model_ema_steps=1,
        lr_warmup_epochs=0,
    )
    trainer = Trainer()
    trainer.cal_acc1_acc5 = lambda *_: (torch.tensor(0.0), torch.tensor(0.0))  # type: ignore[method-assign]
    trainer.train_one_epoch(
        setting.model,
        setting.loss,
        setting.optimizer,
        setting.batches,
        torch.device("cuda"),
        0,
        arguments,
        scaler=setting.scaler,
    )


def _lightning(setting: Setting) -> None:
    from pytorch_lightning import LightningModule
    from pytorch_lightning.plugins.precision.amp import MixedPrecision
    from pytorch_lightning.profilers import PassThroughProfiler

    plugin = MixedPrecision("16-mixed", "cuda", setting.scaler)

    def clipped(*_: Any) -> None:
        if setting.norm is not None:
            plugin.clip_grad_by_norm(setting.optimizer, setting.norm)

    plugin._after_closure = clipped  # type: ignore[method-assign]
    module = LightningModule()
    trainer: Any = types.SimpleNamespace(lightning_module=module, callbacks=[], profiler=PassThroughProfiler())
    module._trainer = trainer
    for inputs, targets in setting.batches:

        def closure(inputs: torch.Tensor = inputs, targets: torch.Tensor = targets) -> torch.Tensor:
            with plugin.forward_context():
                loss = setting.loss(setting.model(inputs), targets)
            setting.optimizer.zero_grad()
            plugin.pre_backward(loss, module).backward()
            return loss

        plugin.optimizer_step(setting.optimizer, module, closure)  # type: ignore[arg-type]


def _fastai(setting: Setting) -> None:
    from fastai.callback.fp16 import MixedPrecision
    from fastai.data.core import DataLoaders
    from fastai.learner import Learner
    from fastai.optimizer import OptimWrapper
    from fastai.torch_core import default_device

    default_device(False)

    class Batches(list[Any]):
        device = torch.device("cpu")

        def to(self, _device: Any) -> Batches:
            return self

    loaders = DataLoaders(Batches(setting.batches), Batches())
    learner = Learner(
        loaders,
        setting.model,
        loss_func=setting.loss,
        opt_func=lambda *_, **__: OptimWrapper(opt=setting.optimizer),
        cbs=[MixedPrecision(init_scale=setting.scale)],
    )
    with learner.no_bar(), learner.no_logging():
        learner.fit(1, setting.optimizer.param_groups[0]["lr"])


def _torchtnt(setting: Setting) -> None:
    from torchtnt.framework.auto_unit import AutoUnit
    from torchtnt.framework.state import EntryPoint, PhaseState, State

    class Unit(AutoUnit):  # type: ignore[misc]
        def compute_loss(self, state: Any, data: Any) -> Any:
            results = self.module(data[0])
            return setting.loss(results, data[1]), results

        def configure_optimizers_and_lr_scheduler(self, module: Any) -> Any:
            return setting.optimizer, None

    with mock.patch("torch.cuda.Stream"):  # there is no stream to have without a GPU
        unit = Unit(module=setting.model, device=torch.device("cuda"), precision="fp16", clip_grad_norm=setting.norm)
    unit._prefetch_stream = None
    unit.grad_scaler = setting.scaler
    state = State(entry_point=EntryPoint.TRAIN, train_state=PhaseState(dataloader=setting.batches, max_epochs=1))
    batches = iter(setting.batches)
    while True:
        try:
            data = unit.get_next_train_batch(state, batches)
        except StopIteration:
            break
        unit.train_step(state, data)
        unit.train_progress.increment_step()


def _accelerate(setting: Setting) -> None:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(mixed_precision="fp16")
    model, optimizer = accelerator.prepare(setting.model, setting.optimizer)
    accelerator.scaler = optimizer.scaler = setting.scaler
    for inputs, targets in setting.batches:
        with accelerator.autocast():
            loss = setting.loss(model(inputs), targets)
        accelerator.backward(loss)
        if setting.norm is not None:
            accelerator.clip_grad_norm_(setting.model.parameters(), setting.norm)
        optimizer.step()
        optimizer.zero_grad()


LOOPS = (
    Loop("pytorch-ignite", "ignite.engine", "supervised_training_step_amp", _ignite),
    Loop("timm", "timm.utils.cuda", "NativeScaler", _timm),
    Loop("monai", "monai.engines.trainer", "SupervisedTrainer", _monai),
    Loop("spikingjelly", "spikingjelly.activation_based.examples.common.train_classify", "Trainer", _spikingjelly),
    Loop("pytorch-lightning", "pytorch_lightning.plugins.precision.amp", "MixedPrecision", _lightning),
    Loop("fastai", "fastai.callback.fp16", "MixedPrecision", _fastai),
    Loop("accelerate", "accelerate.optimizer", "AcceleratedOptimizer", _accelerate),
    Loop("accelerate", "accelerate.accelerator", "Accelerator", _accelerate),
    Loop("torchtnt", "torchtnt.framework.auto_unit", "AutoUnit", _torchtnt),
)
