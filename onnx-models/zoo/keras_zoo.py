"""Small networks of Keras (TensorFlow backend), exported by tf2onnx: channels last.

    pip install tensorflow tf2onnx
    python keras_zoo.py
"""

import keras
import numpy as np
import onnx
import tensorflow as tf
import tf2onnx
from common import HERE, SAMPLES, write
from keras import layers

SOURCE = "Keras, tf2onnx"


class Square(layers.Layer):
    def call(self, x):
        return 0.3 * x * x + 0.5 * x + 0.1


def export(name, what, shape, *stack, **card):
    keras.utils.set_random_seed(sum(map(ord, name)))
    model = keras.Sequential([keras.Input(shape, name="x"), *stack])
    signature = [tf.TensorSpec((None, *shape), tf.float32, name="x")]
    forward = tf.function(lambda x: model(x, training=False), input_signature=signature)
    proto, _ = tf2onnx.convert.from_function(forward, input_signature=signature, opset=15)
    onnx.save(proto, HERE / f"{name}.onnx")
    x = np.random.randn(SAMPLES, *shape).astype("float32")
    if card.get("expect") == "approximated":
        card["calibrate"] = {"x": np.random.randn(30, *shape).astype("float32")}
    answers = {} if card.get("expect") == "refused" else {proto.graph.output[0].name: model(x, training=False).numpy()}
    write(name, SOURCE, what, {"x": x}, answers, **card)


def main():
    image = (8, 8, 2)
    export("keras-cnn", "CNN, channels last, softmax", image, layers.Conv2D(3, 3, padding="same"), layers.BatchNormalization(), Square(),
           layers.AveragePooling2D(2), layers.Flatten(), layers.Dense(3, activation="softmax"))
    export("keras-dense", "dense network, sigmoid at the end", (6,), layers.Dense(5), Square(), layers.Dense(1, activation="sigmoid"))
    export("keras-separable", "separable convolutions, global average pool", image, layers.SeparableConv2D(3, 3), Square(),
           layers.GlobalAveragePooling2D(), layers.Dense(2))
    export("keras-conv1d", "Conv1D on [batch, length, channels]", (16, 2), layers.Conv1D(3, 3, strides=2), Square(), layers.Flatten(), layers.Dense(2))
    export("keras-upsampling", "UpSampling2D, image as the result", (4, 4, 2), layers.Conv2D(2, 3, padding="same"), Square(), layers.UpSampling2D(), layers.Conv2D(1, 3, padding="same"))
    export("keras-relu", "CNN with ReLU", image, layers.Conv2D(3, 3, activation="relu"), layers.AveragePooling2D(2), layers.Flatten(),
           layers.Dense(3, activation="softmax"), expect="approximated")
    export("keras-swish", "dense network with swish", (6,), layers.Dense(6, activation="swish"), layers.Dense(2), expect="approximated")
    export("keras-max-pool", "max pooling", image, layers.Conv2D(2, 3), layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(2),
           expect="refused", because="a maximum is not a polynomial", remedy="use average pooling and retrain")


if __name__ == "__main__":
    main()
