"""Training of convolutional networks whose activations are polynomials (paper §3), for `fhec`."""
