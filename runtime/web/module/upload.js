// Evaluation keys to the server: made one at a time, sent as they are made, gone on with where a connection broke or a page ended.
//
// The same key and program give the same bytes, so what the server has is passed over and the rest is sent. While a part is
// on its way the next key is made; nothing more is in memory.

import { Refusal } from "./server.js";

/** Bytes of one request, at least. */
const PART = 4 << 20;
/** Times in a row that a part may break. */
const BREAKS = 8;
/** States that are asked for in vain before the server is given up: waits of a minute for its check. */
const MAX_LOOKS = 10_000;

export async function uploadKeys(server, facts, begin, progress) {
  const { program, key, keyFileBytes: total } = facts;
  let isSent = false;
  for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
    const keys = await server.keys(program, key);
    const state = keys?.state;
    if (state === "ready") return;
    if (state === "checking") {
      progress({ phase: "checking", sentBytes: total, totalBytes: total });
      continue;
    }
    // A refusal of an earlier file says nothing about this one.
    if (state === "refused" && isSent) {
      throw new Refusal(String(keys.error?.code ?? "bad-keys"), String(keys.error?.message ?? "the keys were refused"));
    }
    const from = state === "uploading" ? keys.received_bytes : 0;
    if (!Number.isSafeInteger(from) || from < 0 || from > total) {
      throw new Refusal("server", `${from} bytes of keys came, of ${total}`);
    }
    isSent = await send(server, facts, begin(), from, progress);
  }
  throw new Refusal("server", "the server does not finish with the keys");
}

/** Sends the stream from byte `from` on. False says that the server has less than it had, so it must begin again. */
async function send(server, facts, stream, from, progress) {
  const { keyFileBytes: total } = facts;
  let [made, pending, flight] = [0, [], Promise.resolve(true)];
  const flush = async () => {
    const bytes = joined(pending);
    pending = [];
    if (!(await flight)) return false;
    if (bytes.length > 0) flight = sendPart(server, facts, made - bytes.length, bytes, progress);
    // The error of a part is found where it is waited for.
    flight.catch(() => {});
    return true;
  };
  try {
    for (let piece = stream.next(); piece; piece = stream.next()) {
      const start = made;
      made += piece.length;
      if (made > from) pending.push(piece.subarray(Math.max(0, from - start)));
      const size = pending.reduce((sum, part) => sum + part.length, 0);
      if (size >= PART && !(await flush())) return false;
      if (made <= from) progress({ phase: "sending", sentBytes: made, totalBytes: total });
      // A turn for messages: the caller may have cancelled.
      await server.pause(0);
    }
    if (made !== total) throw new Refusal("keys", `${made} bytes of keys were made instead of ${total}`);
    return (await flush()) && (await flight);
  } finally {
    stream.free();
  }
}

function joined(parts) {
  if (parts.length === 1) return parts[0];
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Sends one part, whatever breaks in between. False says that the server has less than what came before it. */
async function sendPart(server, { program, key, keyFileBytes: total }, first, bytes, progress) {
  const end = first + bytes.length;
  let at = first;
  for (let breaks = 0; ; ) {
    try {
      await server.putKeys(program, key, at, bytes.subarray(at - first), total);
      progress({ phase: "sending", sentBytes: end, totalBytes: total });
      return true;
    } catch (error) {
      const isPassing = error.code === "connection" || [408, 409, 429, 503].includes(error.status);
      breaks += 1;
      if (!isPassing || breaks > BREAKS) throw error;
      progress({ phase: "waiting", sentBytes: at, totalBytes: total });
      await server.pause(error.retryAfter ?? Math.min(0.25 * 2 ** breaks, 16));
    }
    const keys = await server.keys(program, key);
    if (keys?.state === "ready" || keys?.state === "checking") return true;
    const has = keys?.state === "uploading" ? keys.received_bytes : 0;
    if (!(has >= first && has <= end)) return false;
    if (has === end) return true;
    at = has;
  }
}
