// A hand that draws: digits of examples/digits as strokes of a pointer, and the page as a person uses it.

import { readFileSync } from "node:fs";
import { inflateSync } from "node:zlib";
import { deflateSync, crc32 } from "node:zlib";

/** Gray pixels of a PNG of eight bits, one channel, without interlacing. */
export function readGray(path) {
  const data = readFileSync(path);
  const [width, height, depth, kind] = [data.readUInt32BE(16), data.readUInt32BE(20), data[24], data[25]];
  if (depth !== 8 || kind !== 0) throw new Error(`${path} is not gray`);
  const parts = [];
  for (let place = 8; place < data.length; place += 12 + data.readUInt32BE(place)) {
    if (data.toString("latin1", place + 4, place + 8) === "IDAT") {
      parts.push(data.subarray(place + 8, place + 8 + data.readUInt32BE(place)));
    }
  }
  const lines = inflateSync(Buffer.concat(parts));
  const pixels = new Uint8Array(width * height);
  for (let y = 0; y < height; y += 1) {
    const filter = lines[y * (width + 1)];
    for (let x = 0; x < width; x += 1) {
      const [left, above] = [x > 0 ? pixels[y * width + x - 1] : 0, y > 0 ? pixels[(y - 1) * width + x] : 0];
      const corner = x > 0 && y > 0 ? pixels[(y - 1) * width + x - 1] : 0;
      const near = left + above - corner;
      const [dl, da, dc] = [Math.abs(near - left), Math.abs(near - above), Math.abs(near - corner)];
      const paeth = dl <= da && dl <= dc ? left : da <= dc ? above : corner;
      const guess = [0, left, above, (left + above) >> 1, paeth][filter];
      pixels[y * width + x] = (lines[y * (width + 1) + 1 + x] + guess) & 255;
    }
  }
  return { width, height, pixels };
}

/** A gray PNG. */
export function writeGray(width, height, pixels) {
  const chunk = (name, body) => {
    const bytes = Buffer.alloc(12 + body.length);
    bytes.writeUInt32BE(body.length, 0);
    bytes.write(name, 4, "latin1");
    body.copy(bytes, 8);
    bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + body.length)), 8 + body.length);
    return bytes;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = 8;
  const lines = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y += 1) lines.set(pixels.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  const start = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([start, chunk("IHDR", head), chunk("IDAT", deflateSync(lines)), chunk("IEND", Buffer.alloc(0))]);
}

/** Draws the ink of a picture: a stroke of the pointer along the middle of every run of bright pixels in every second row. */
export async function draw(page, { width, height, pixels }) {
  await page.locator("#clear").click();
  await page.locator("#drawing").scrollIntoViewIfNeeded();
  const box = await page.locator("#drawing").boundingBox();
  const point = (x, y) => [box.x + ((x + 0.5) / width) * box.width, box.y + ((y + 0.5) / height) * box.height];
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      if (pixels[y * width + x] < 128) continue;
      const start = x;
      while (x + 1 < width && pixels[y * width + x + 1] >= 128) x += 1;
      // The pen is about two pixels wide: it stays within the run.
      const [from, to] = x - start >= 2 ? [start + 0.5, x - 0.5] : [(start + x) / 2, (start + x) / 2];
      await page.mouse.move(...point(from, y));
      await page.mouse.down();
      await page.mouse.move(...point(to, y), { steps: 2 });
      await page.mouse.up();
    }
  }
}

/** The pixels of a gray canvas, read from a copy: the page's own has no need to be read fast. */
export async function grayOf(page, id) {
  const [width, height, data] = await page.evaluate((id) => {
    const canvas = document.getElementById(id);
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, width, height);
    return [width, height, [...data].filter((_, i) => i % 4 === 0)];
  }, id);
  return { width, height, pixels: Uint8Array.from(data) };
}

/** The pixels that the page encrypts. */
export const seen = (page) => grayOf(page, "seen");

/** Waits until a question is answered or refused, and says what the page says. */
export async function ended(page) {
  await page.waitForFunction(
    () => document.getElementById("cancel").hidden && document.querySelector("#steps li.done, #steps li.failed"),
    null,
    { timeout: 300_000 },
  );
  return page.evaluate(() => {
    const text = (id) => document.getElementById(id).textContent.trim();
    const message = document.getElementById("message");
    const steps = [...document.querySelectorAll("#steps li")].map((row) => [row.dataset.step, Number(row.dataset.ms), row.className]);
    const failed = !message.hidden;
    return {
      message: failed ? message.textContent : null,
      code: failed ? message.dataset.code : null,
      label: document.querySelector("#answer strong")?.textContent ?? null,
      button: text("ask"),
      bytes: text("noise-bytes"),
      steps,
    };
  });
}

/** Asks and waits for the answer. */
export async function ask(page) {
  await page.locator("#ask").click();
  return ended(page);
}
