// What the page shows: sizes, noise, steps with their times, answers.

const element = (name, className, text = "") => {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  return made;
};

/** Bytes for people. */
export function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) [bytes, unit] = [bytes / 1000, unit + 1];
  return `${unit === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toPrecision(3)} ${units[unit]}`;
}

/** The picture in the model's size. */
export function showSeen(canvas, { channels, height, width }, pixels) {
  [canvas.width, canvas.height] = [width, height];
  const image = new ImageData(width, height);
  const plane = height * width;
  for (let i = 0; i < plane; i += 1) {
    const value = (c) => (pixels ? pixels[(channels > 1 ? c : 0) * plane + i] : 0);
    image.data.set([value(0), value(1), value(2), 255], 4 * i);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.nextElementSibling.textContent = `encrypted as ${height}×${width}`;
}

/** The bytes that the server gets, as gray pixels, as a number and as digits. */
export function showNoise(canvas, words, digits, bytes) {
  const { width, height } = canvas;
  // From the middle: the file begins with names that are no secret.
  const start = Math.max(0, (bytes.length - width * height) >> 1);
  const image = new ImageData(width, height);
  for (let i = 0; i < width * height; i += 1) {
    const value = bytes[(start + i) % bytes.length];
    image.data.set([value, value, value, 255], 4 * i);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  words.textContent = `${size(bytes.length)} that look like noise; these are ${size(width * height)} of them.`;
  digits.textContent = [...bytes.subarray(start, start + 96)].map((b) => b.toString(16).padStart(2, "0")).join(" ");
}

/** The class, and the scores from the best on, if they were asked for. */
export function showAnswer(output, list, doubts, { labels }, answer) {
  const label = answer.label ?? "a number, which is a score";
  const parts = [element("strong", label.length > 3 ? "word" : "", label)];
  if (answer.confidence !== undefined) {
    parts.push(element("span", "quiet", `confidence at least ${Math.round(answer.confidence * 100)} %`));
  }
  output.replaceChildren(...parts);
  showScores(list, labels, answer);
  const words = [...answer.doubts];
  if (answer.undecided) words.unshift("The best class leads by no more than the error: it may be another");
  doubts.hidden = words.length === 0;
  doubts.textContent = words.join(". ");
}

function showScores(list, labels, answer) {
  list.parentElement.hidden = answer.scores === undefined;
  if (answer.scores === undefined) return void list.replaceChildren();
  const order = answer.scores.map((_, i) => i);
  order.sort((a, b) => (b === answer.class) - (a === answer.class) || answer.scores[b] - answer.scores[a]);
  const [low, high] = [Math.min(...answer.scores), Math.max(...answer.scores)];
  const digits = Math.max(0, -Math.round(Math.log10(answer.unit)));
  const rows = order.slice(0, 10).map((i) => {
    const row = element("li", i === answer.class ? "best" : "");
    const meter = element("meter");
    [meter.min, meter.max, meter.value] = [low, high > low ? high : low + 1, answer.scores[i]];
    meter.setAttribute("aria-hidden", "true");
    row.append(element("span", "name", labels[i] ?? `${i}`), meter, element("span", "value", answer.scores[i].toFixed(digits).replace("-", "−")));
    return row;
  });
  list.replaceChildren(...rows);
}

/** The steps of a question, each with its time. */
export class Steps {
  #list;
  #open = null;

  constructor(list) {
    this.#list = list;
  }

  clear() {
    this.#list.replaceChildren();
    this.#open = null;
  }

  begin(name) {
    const [row, middle, note, time] = [element("li"), element("span", "middle"), element("span", "note"), element("span", "time")];
    const bar = element("progress");
    bar.setAttribute("aria-label", name);
    // What changes all the time is not read out.
    for (const changing of [note, time]) changing.setAttribute("aria-live", "off");
    middle.append(bar, note);
    row.append(element("span", "mark"), element("span", "name", name), middle, time);
    row.dataset.step = name;
    this.#list.append(row);
    const began = performance.now();
    const timer = setInterval(() => (time.textContent = duration(performance.now() - began)), 100);
    const close = (className, words) => {
      clearInterval(timer);
      row.className = className;
      const elapsed = performance.now() - began;
      [row.dataset.ms, time.textContent, note.textContent] = [elapsed.toFixed(2), duration(elapsed), words];
      bar.remove();
      this.#open = null;
    };
    this.#open = {
      set: (part, words) => ([bar.value, note.textContent] = [part, words]),
      end: (words = "") => close("done", words),
      fail: () => close("failed", ""),
    };
    return this.#open;
  }

  /** The step that is under way did not come to its end. */
  fail() {
    this.#open?.fail();
  }
}

function duration(ms) {
  if (ms < 100) return `${ms.toFixed(1)} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
