"""Claims on the augmentation of images, one at a time."""

from measure.claims.along import Grows
from measure.claims.predicates import Faster, Figure, Warned
from measure.claims.spec import Claim, Compare, Said, Script, Swept

_LAYERS = Script(
    """import logging
import tensorflow as tf

said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
tf.get_logger().addHandler(handler)
images = tf.random.uniform([8, 16, 16, 3])

def loops(f, elems):
    said.clear()
    made = tf.function(lambda x: tf.vectorized_map(f, x)).get_concrete_function(elems)
    return sum(op.type.endswith("While") for op in made.graph.get_operations())

def warnings():
    return sum("while_loop" in message for message in said)

layers = {
    "flip": tf.keras.layers.RandomFlip(),
    "contrast": tf.keras.layers.RandomContrast(0.5),
    "brightness": tf.keras.layers.RandomBrightness(0.2),
    "rotation": tf.keras.layers.RandomRotation(0.2),
    "zoom": tf.keras.layers.RandomZoom(0.2),
    "translation": tf.keras.layers.RandomTranslation(0.2, 0.2),
}
for name, layer in layers.items():
    report(**{f"{name}_loops": loops(lambda image: layer(image, training=True), images)})
report(rotation_loops=loops(lambda image: layers["rotation"](image, training=True), images), rotation_said=warnings())
factors = tf.random.uniform([8])
report(
    factor_loops=loops(lambda both: tf.image.adjust_contrast(*both), (images, factors)),
    factor_said=warnings(),
)

def different(f):
    drawn = tf.function(lambda x: tf.vectorized_map(f, x))(images)
    return len(set(drawn.numpy().tolist()))

ones = tf.ones([16, 16, 3])
brightness = tf.keras.layers.RandomBrightness(0.5, value_range=(0, 10))
report(
    with_state=different(lambda image: tf.random.uniform([])),
    one_seed=different(lambda image: tf.random.stateless_uniform([], seed=(1, 2))),
    layer=different(lambda image: brightness(ones, training=True)[0, 0, 0]),
)
""",
    seconds=7.0,
)

_SIZE = {"batch": 32, "height": 64, "width": 64}
_ROTATED = Compare("augment", ("map_fn.graph", "vectorized_map.graph"), size=_SIZE, budget_s=6.0)
_CONTRAST = Compare(
    "augment", ("map_fn.graph", "vectorized_map.graph"), size=_SIZE, options={"op": "contrast"}, budget_s=6.0
)
_FLIPPED = Compare("augment", ("vectorized_map.graph",), size=_SIZE, options={"op": "flip"}, budget_s=2.0)
_SMALL = Compare(
    "augment",
    ("map_fn.graph", "vectorized_map.graph", "batched.graph"),
    size={"batch": 128, "height": 16, "width": 16},
    budget_s=6.0,
)
_MORE_IMAGES = Swept(
    "augment",
    ("vectorized_map.graph",),
    axis="batch",
    values=(16, 128, 1024),
    size={"height": 16, "width": 16},
    budget_s=10.0,
)

_KERAS_CV = Said("thread", "https://github.com/keras-team/keras-cv/issues/291")
_LOOPS = "while loops in the graph: {value}"
_SAID = "warnings about it: {value}"
_DIFFERENT = "different numbers for eight images: {value}"

CLAIMS = (
    Claim(
        id="keras_augmentation_falls_back",
        question="speed",
        sentence="In `tf.vectorized_map`, the layers of Keras that augment images fall back to a while loop.",
        said=(_KERAS_CV, Said("thread", "https://github.com/keras-team/keras-cv/issues/581")),
        tests=tuple(
            Figure(_LAYERS, f"{layer.lower()}_loops", _LOOPS, least=1, when=f"`Random{layer}`")
            for layer in ("Rotation", "Zoom", "Translation", "Flip", "Contrast", "Brightness")
        ),
    ),
    Claim(
        id="fallback_is_said",
        question="limits",
        sentence="Where `tf.vectorized_map` makes a while loop of an op, TensorFlow warns.",
        said=(Said("documentation", "https://www.tensorflow.org/api_docs/python/tf/vectorized_map"),),
        tests=(
            Figure(_LAYERS, "rotation_said", _SAID, least=1, when="`RandomRotation`"),
            Figure(_LAYERS, "factor_said", _SAID, least=1, when="`tf.image.adjust_contrast`, a factor for each image"),
        ),
        note="A converter of TensorFlow's own may make the loop: then nothing is said.",
    ),
    Claim(
        id="same_random_numbers_for_all",
        question="correctness",
        sentence="In `tf.vectorized_map`, every image gets the same random number.",
        said=(Said("thread", "https://github.com/keras-team/keras-cv/issues/1382"),),
        tests=(
            Figure(_LAYERS, "with_state", _DIFFERENT, most=1, when="`tf.random.uniform`"),
            Figure(_LAYERS, "one_seed", _DIFFERENT, most=1, when="`tf.random.stateless_uniform` with one seed"),
            Figure(_LAYERS, "layer", _DIFFERENT, most=1, when="`RandomBrightness`"),
        ),
    ),
    Claim(
        id="augmentation_falls_back",
        question="limits",
        sentence="Augmenting one image at a time makes `tf.vectorized_map` fall back to a while loop.",
        said=(_KERAS_CV, Said("thread", "https://github.com/keras-team/keras-cv/pull/146")),
        tests=(
            Warned(_ROTATED, "vectorized_map.graph", "falls_back", when="for a rotation"),
            Warned(_CONTRAST, "vectorized_map.graph", "falls_back", when="for a contrast"),
            Warned(_FLIPPED, "vectorized_map.graph", "falls_back", when="for a flip"),
        ),
    ),
    Claim(
        id="fallback_gains_little",
        question="speed",
        sentence="Where `tf.vectorized_map` falls back to a while loop, it is less than twice as fast as `tf.map_fn`.",
        said=(Said("thread", "https://github.com/keras-team/keras-cv/pull/146"),),
        tests=(
            Faster(_ROTATED, "map_fn.graph", "vectorized_map.graph", by=0.5, when="for a rotation"),
            Faster(_CONTRAST, "map_fn.graph", "vectorized_map.graph", by=0.5, when="for a contrast"),
        ),
    ),
    Claim(
        id="fallback_grows_in_proportion",
        question="speed",
        sentence="The time of an augmentation that falls back to a while loop grows no faster than the batch.",
        said=(Said("thread", "https://github.com/keras-team/keras-cv/issues/581"),),
        tests=(Grows(_MORE_IMAGES, "vectorized_map.graph", most=1.25),),
    ),
    Claim(
        id="rotation_of_the_batch_faster",
        question="speed",
        sentence="One op that rotates a batch of small images is faster than mapping a rotation over them.",
        said=(Said("thread", "https://github.com/keras-team/keras-cv/issues/581"),),
        tests=(
            Faster(_SMALL, "batched.graph", "vectorized_map.graph"),
            Faster(_SMALL, "batched.graph", "map_fn.graph"),
        ),
    ),
)
