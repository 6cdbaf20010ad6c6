"""The drawn digits, and that they are the pictures in the repository."""

from pathlib import Path

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed: drawing tests skipped")
image = pytest.importorskip("PIL.Image", reason="pillow is not installed: drawing tests skipped")

from fhec_training.draw import DIGITS, HANDS, draw  # noqa: E402

SHIPPED = Path(__file__).resolve().parents[2] / "digits"


@pytest.mark.parametrize("hand", HANDS)
def test_digits_have_ink_inside_a_black_frame(hand):
    for digit in DIGITS:
        picture = draw(digit, HANDS[hand])
        assert picture.max() == 255
        assert 30 < (picture > 127).sum() < 300
        assert not picture[0].any() and not picture[-1].any() and not picture[:, 0].any() and not picture[:, -1].any()


def test_shipped_pictures_are_what_the_code_draws():
    for name, hand in HANDS.items():
        for digit in DIGITS:
            shipped = np.asarray(image.open(SHIPPED / f"{name}-{digit}.png")).astype(int)
            assert abs(shipped - draw(digit, hand)).max() <= 1
