// The drawing surface: pointer, keyboard, dropped pictures; and the picture in the model's size.

/** Sides of the surface in its own pixels. */
const SIDE = 280;
/** Width of the pen, as a part of the side. */
const PEN = 1 / 14;
/** Largest side of a drawing within the picture, as digits of MNIST have it. */
const BOX = 20 / 28;

export class Drawing {
  #canvas;
  #ink;
  #shape = { channels: 1, height: 28, width: 28 };
  /** Pixels of a picture that was chosen, instead of a drawing. */
  #picture = null;
  #isEmpty = true;
  #cursor = null;
  /** Counts what was begun anew: a picture that is still being read when another thing was begun is not shown. */
  #turn = 0;
  #changed;

  constructor(canvas, changed) {
    this.#canvas = canvas;
    this.#changed = changed;
    this.#ink = new OffscreenCanvas(SIDE, SIDE).getContext("2d", { willReadFrequently: true });
    this.clear();
    this.#listen();
  }

  get isEmpty() {
    return this.#isEmpty;
  }

  set shape(shape) {
    this.#shape = shape;
    this.clear();
  }

  clear() {
    this.#ink.fillStyle = "#000";
    this.#ink.fillRect(0, 0, SIDE, SIDE);
    this.#picture = null;
    this.#isEmpty = true;
    this.#turn += 1;
    this.#show();
  }

  /** A picture of any size, scaled to the model's; one of that size is taken as it is. */
  async take(file) {
    // At once, so that nobody asks about the drawing before it while this is read.
    this.clear();
    const turn = this.#turn;
    const bitmap = await createImageBitmap(file, { colorSpaceConversion: "none", premultiplyAlpha: "none" });
    if (turn !== this.#turn) return bitmap.close();
    const { height, width } = this.#shape;
    const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    context.imageSmoothingQuality = "high";
    context.drawImage(bitmap, 0, 0, width, height);
    bitmap.close();
    this.#picture = context.getImageData(0, 0, width, height);
    this.#isEmpty = false;
    this.#ink.imageSmoothingEnabled = false;
    this.#ink.drawImage(context.canvas, 0, 0, SIDE, SIDE);
    this.#show();
  }

  /** Bytes in [channel, y, x] order: a chosen picture, or the drawing, centered as digits of MNIST are. */
  pixels() {
    const { channels, height, width } = this.#shape;
    const gray = this.#picture ? null : centered(this.#ink.getImageData(0, 0, SIDE, SIDE).data, height, width);
    const pixels = new Uint8Array(channels * height * width);
    for (let i = 0; i < height * width; i += 1) {
      const [r, g, b] = gray ? [gray[i], gray[i], gray[i]] : this.#picture.data.subarray(4 * i, 4 * i + 3);
      if (channels === 1) pixels[i] = r === g && g === b ? r : luma(r, g, b);
      else [r, g, b].slice(0, channels).forEach((value, c) => (pixels[c * height * width + i] = value));
    }
    return pixels;
  }

  #show() {
    const context = this.#canvas.getContext("2d");
    context.drawImage(this.#ink.canvas, 0, 0);
    if (this.#cursor) {
      const { x, y, isDown } = this.#cursor;
      context.strokeStyle = isDown ? "#4caf7a" : "#6ea3ff";
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x, y, (SIDE * PEN) / 2, 0, 2 * Math.PI);
      context.stroke();
    }
    this.#changed();
  }

  #line(from, to) {
    if (this.#picture) this.clear();
    const ink = this.#ink;
    [ink.strokeStyle, ink.lineWidth, ink.lineCap, ink.lineJoin] = ["#fff", SIDE * PEN, "round", "round"];
    ink.beginPath();
    ink.moveTo(from.x, from.y);
    ink.lineTo(to.x, to.y);
    ink.stroke();
    this.#isEmpty = false;
    this.#show();
  }

  #listen() {
    const canvas = this.#canvas;
    const at = (event) => {
      const { left, top, width, height } = canvas.getBoundingClientRect();
      return { x: ((event.clientX - left) / width) * SIDE, y: ((event.clientY - top) / height) * SIDE };
    };
    let last = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      last = at(event);
      this.#line(last, { x: last.x + 0.01, y: last.y });
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!last) return;
      for (const part of event.getCoalescedEvents?.() ?? [event]) {
        const next = at(part);
        this.#line(last, next);
        last = next;
      }
    });
    const end = () => (last = null);
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("blur", () => {
      this.#cursor = null;
      this.#show();
    });
    canvas.addEventListener("dragover", (event) => {
      event.preventDefault();
      canvas.classList.add("over");
    });
    canvas.addEventListener("dragleave", () => canvas.classList.remove("over"));
    canvas.addEventListener("drop", (event) => {
      event.preventDefault();
      canvas.classList.remove("over");
      const file = event.dataTransfer?.files[0];
      if (file) canvas.dispatchEvent(new CustomEvent("picture", { detail: file }));
    });
  }

  #key(event) {
    const step = SIDE / 28;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    const cursor = (this.#cursor ??= { x: SIDE / 2, y: SIDE / 4, isDown: false });
    const within = (value) => Math.min(SIDE - step, Math.max(step, value));
    if (moves[event.key]) {
      const from = { ...cursor };
      [cursor.x, cursor.y] = [within(cursor.x + moves[event.key][0]), within(cursor.y + moves[event.key][1])];
      if (cursor.isDown) this.#line(from, cursor);
    } else if (event.key === " ") {
      cursor.isDown = !cursor.isDown;
      if (cursor.isDown) this.#line(cursor, { x: cursor.x + 0.01, y: cursor.y });
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.clear();
    } else {
      return;
    }
    event.preventDefault();
    this.#show();
  }
}

/** Brightness of a color, as `fhe-run` computes it for pictures (Rec. 709, in integers). */
function luma(r, g, b) {
  return Math.floor((2126 * r + 7152 * g + 722 * b) / 10000);
}

/** The ink within its bounds, scaled to the box and put with its center of mass in the middle, as averages over areas. */
function centered(data, height, width) {
  const ink = (x, y) => (x < 0 || y < 0 || x >= SIDE || y >= SIDE ? 0 : data[4 * (y * SIDE + x)]);
  let [left, top, right, bottom, mass, atX, atY] = [SIDE, SIDE, -1, -1, 0, 0, 0];
  for (let y = 0; y < SIDE; y += 1) {
    for (let x = 0; x < SIDE; x += 1) {
      const value = ink(x, y);
      if (value === 0) continue;
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
      [mass, atX, atY] = [mass + value, atX + value * (x + 0.5), atY + value * (y + 0.5)];
    }
  }
  const out = new Uint8Array(height * width);
  if (mass === 0) return out;
  const size = Math.max(right - left + 1, bottom - top + 1);
  // Pixels of the surface for one of the picture; a dot is not blown up.
  const scale = Math.max(size / (Math.min(height, width) * BOX), SIDE / 2 / Math.min(height, width));
  const [x0, y0] = [atX / mass - (width / 2) * scale, atY / mass - (height / 2) * scale];
  for (let row = 0; row < height; row += 1) {
    for (let column = 0; column < width; column += 1) {
      out[row * width + column] = average(ink, x0 + column * scale, y0 + row * scale, scale);
    }
  }
  return out;
}

/** The average over a square of the surface; pixels count by the part of them that lies in it. */
function average(ink, x, y, side) {
  const part = (from, at) => Math.min(at + 1, from + side) - Math.max(at, from);
  let sum = 0;
  for (let row = Math.floor(y); row < y + side; row += 1) {
    for (let column = Math.floor(x); column < x + side; column += 1) {
      sum += ink(column, row) * part(x, column) * part(y, row);
    }
  }
  return Math.round(sum / (side * side));
}
