"""The table of `zoo:keras/`: keras.applications on small images, and small recurrent and attention networks.

Listing them imports no framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class KerasEntry:
    """One entry.

    Attributes:
        name: what follows `zoo:keras/`.
        description: one line for people.
        application: class of keras.applications, or '' for one of `keras_networks`.
        size: height and width of the image, the least that the application takes.
        top: whether the application comes with its classifier; those with very large ones come without.
    """

    name: str
    description: str
    application: str = ""
    size: int = 32
    top: bool = True


_APPLICATIONS = (
    KerasEntry("mobilenet", "MobileNet: depthwise separable convolutions", "MobileNet"),
    KerasEntry("mobilenet-v2", "MobileNetV2: inverted residuals", "MobileNetV2"),
    KerasEntry("mobilenet-v3-small", "MobileNetV3Small: hard swish, squeeze and excitation", "MobileNetV3Small"),
    KerasEntry("efficientnet-b0", "EfficientNetB0: swish, squeeze and excitation", "EfficientNetB0"),
    KerasEntry("efficientnet-v2-b0", "EfficientNetV2B0: fused inverted residuals", "EfficientNetV2B0"),
    KerasEntry("densenet121", "DenseNet121: concatenated features", "DenseNet121"),
    KerasEntry("resnet50", "ResNet50: bottleneck residuals", "ResNet50"),
    KerasEntry("resnet50-v2", "ResNet50V2: pre-activation residuals", "ResNet50V2"),
    KerasEntry("vgg16", "VGG16 without its classifier", "VGG16", top=False),
    KerasEntry("xception", "Xception: separable convolutions", "Xception", size=71),
    KerasEntry("inception-v3", "InceptionV3: parallel convolutions", "InceptionV3", size=75),
    KerasEntry("nasnet-mobile", "NASNetMobile: searched cells", "NASNetMobile", top=False),
    KerasEntry("convnext-tiny", "ConvNeXtTiny: large kernels, exact GELU", "ConvNeXtTiny"),
)
_NETWORKS = (
    KerasEntry("mlp", "dense layers with batch normalization and dropout"),
    KerasEntry("lstm", "two LSTM layers over a sequence of any length"),
    KerasEntry("gru", "a GRU over a sequence of any length"),
    KerasEntry("bidirectional-lstm", "LSTM in both directions, then a dense layer at every step"),
    KerasEntry("simple-rnn", "a simple recurrent layer over eight steps"),
    KerasEntry("text-average", "embedding, average over the words, classifier"),
    KerasEntry("text-cnn", "embedding, convolutions of three widths, maximum over the words, classifier"),
    KerasEntry("text-gru", "embedding, bidirectional GRU, classifier"),
    KerasEntry("attention-pooling", "multi-head self-attention over features, average, classifier"),
    KerasEntry("transformer-encoder", "two encoder blocks over token and position embeddings, with padding mask"),
    KerasEntry("seq2seq-attention", "dot-product attention of a decoder over an encoder, both LSTM"),
    KerasEntry("unet", "convolutions down, transposed convolutions and bilinear upsampling up, with skips"),
    KerasEntry("conv-lstm", "a convolutional LSTM over four frames"),
)
KERAS: Mapping[str, KerasEntry] = MappingProxyType({entry.name: entry for entry in (*_APPLICATIONS, *_NETWORKS)})
