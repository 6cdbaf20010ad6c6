"""Exports one small NHWC CNN from Keras (TensorFlow backend) with tf2onnx.

    pip install tensorflow tf2onnx
    python keras_export.py

Writes keras-nhwc.onnx, and a JSON file that holds one input (NHWC) and TensorFlow's own answer.
"""

import json
from pathlib import Path

import keras
import numpy as np
import onnx
import tensorflow as tf
import tf2onnx

HERE = Path(__file__).parent


class Quadratic(keras.layers.Layer):
    """(x + s)^2 * a + t with one learned triple per channel."""

    def build(self, shape):
        def weight(name, low, high):
            initializer = keras.initializers.RandomUniform(low, high, seed=len(name))
            return self.add_weight(name=name, shape=(shape[-1],), initializer=initializer)

        self.a, self.s, self.t = weight("gain", 0.2, 0.3), weight("shift", 0.8, 1.2), weight("offset", -0.1, 0.1)

    def call(self, x):
        return tf.square(x + self.s) * self.a + self.t


def build():
    x = inputs = keras.Input((10, 10, 2), name="image")
    x = keras.layers.ZeroPadding2D(((1, 1), (1, 1)))(x)
    x = keras.layers.Conv2D(4, 3, use_bias=False)(x)
    x = Quadratic()(keras.layers.BatchNormalization()(x))
    x = keras.layers.DepthwiseConv2D(3, strides=2, padding="same")(x)
    y = Quadratic()(keras.layers.BatchNormalization()(x))
    y = keras.layers.Conv2D(4, 3, padding="same")(y)
    x = Quadratic()(keras.layers.Add()([x, y]))
    x = keras.layers.AveragePooling2D(2, padding="same")(x)
    x = keras.layers.Dropout(0.1)(keras.layers.Flatten()(x))
    x = Quadratic()(keras.layers.Dense(8)(x))
    return keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(x))


def main():
    keras.utils.set_random_seed(7)
    model = build()
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(np.random.randn(128, 10, 10, 2), np.random.randint(0, 3, 128), epochs=2, verbose=0)
    x = np.random.randn(1, 10, 10, 2).astype("float32")
    expected = model(x, training=False).numpy()
    signature = [tf.TensorSpec((None, 10, 10, 2), tf.float32, name="image")]
    forward = tf.function(lambda image: model(image, training=False), input_signature=signature)
    proto, _ = tf2onnx.convert.from_function(forward, input_signature=signature, opset=15)
    onnx.save(proto, HERE / "keras-nhwc.onnx")
    sample = {"input": x.flatten().tolist(), "output": expected.flatten().tolist()}
    (HERE / "keras-nhwc.json").write_text(json.dumps(sample))


if __name__ == "__main__":
    main()
