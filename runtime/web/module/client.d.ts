/** What went wrong, with a word for programs in `code`. */
export class ClientError extends Error {
  /**
   * `interface`, `insecure`, `parameters`, `key`, `input`, `result`: refused here. `connection`, `cancelled`, `program`,
   * `storage`, `worker`, `closed`: what it says. `bug`: the module stopped; the client is closed. Anything else is the
   * server's own word (docs/serving.md).
   */
  readonly code: string;
}

/** What there is to know of a program, computed from its interface. */
export interface Facts {
  readonly program: string;
  readonly key: string;
  readonly model: string;
  readonly channels: number;
  readonly height: number;
  readonly width: number;
  /** How many there are. */
  readonly scores: number;
  /** Names of the classes; empty where the program has none. */
  readonly labels: readonly string[];
  readonly logN: number;
  readonly modulusBits: number;
  readonly keys: number;
  readonly keyFileBytes: number;
  readonly inputBytes: number;
  readonly resultBytes: number;
  /** What scores are rounded to. */
  readonly unit: number;
  readonly predictedSeconds: number;
  /** What computes the transforms: `wasm-fma` with relaxed vectors, `plain` elsewhere. */
  readonly engine: string;
  /** Whether the key was in the browser's storage already. */
  readonly wasKept: boolean;
}

/** A decrypted result, with no digit that may not be seen. */
export interface Answer {
  /** Position of the best class; none if the model computes a number, which is a score. */
  readonly class?: number;
  readonly label?: string;
  /** In tenths, rounded down; none for a single score. */
  readonly confidence?: number;
  /** Whether the error may have exchanged the best class with another. */
  readonly undecided: boolean;
  /** In the order of the output, rounded to `unit`; only if they were asked for. */
  readonly scores?: readonly number[];
  readonly unit?: number;
  /** What scores risk. */
  readonly warning?: string;
  /** What is wrong with scores, in words. */
  readonly doubts: readonly string[];
}

/** How far keys are. */
export interface KeyProgress {
  readonly phase: "sending" | "checking" | "waiting";
  readonly sentBytes: number;
  readonly totalBytes: number;
}

/** How far a job is. */
export interface JobProgress {
  readonly phase: "queued" | "running" | "waiting";
  /** The layer that is computed, as the program names it. */
  readonly layer?: string;
  /** Part that is done, from 0 to 1. */
  readonly fraction: number;
  readonly etaSeconds?: number;
}

/** Where the secret key is: in memory until the client is closed, or in the browser's storage as well. */
export type Storage = "memory" | "indexeddb";

export interface Options {
  /** The secret key as a file, of `exportKey` or `fhe-run keygen`; otherwise the kept one, or a new one. */
  key?: Uint8Array;
  /** `memory` unless told. `kept` takes the key that the browser keeps, if there is one, and keeps no new one. */
  storage?: Storage | "kept";
  /** The hash that the program must have. */
  program?: string;
  /** Take parameters below 128 bits of security. */
  insecure?: boolean;
}

/** How to talk to a server. */
export interface Access {
  token?: string;
  signal?: AbortSignal;
}

/** A program as a server lists it. */
export interface Program {
  readonly id: string;
  readonly name: string;
  readonly key_file_bytes: number;
  readonly input_bytes: number;
  readonly result_bytes: number;
  readonly predicted_seconds: number;
}

/** A program's input and output under one secret key, which does not leave its worker unless it is exported. */
export class Client {
  private constructor();
  /** A client of the program of an interface file. */
  static create(bytes: Uint8Array, options?: Options): Promise<Client>;
  /** The same for a program that a server has: its only one, or the one with this name or hash. */
  static connect(url: string | URL, options?: Options & Access): Promise<Client>;
  readonly facts: Facts;
  /** Makes the evaluation keys one at a time and sends them, from where an earlier call stopped; done when they are checked. */
  uploadKeys(url: string | URL, onProgress?: (progress: KeyProgress) => void, access?: Access): Promise<void>;
  /** Whether the server has the keys, checked. */
  hasKeys(url: string | URL, access?: Access): Promise<boolean>;
  /** Bytes of a picture, or numbers that the model takes as they are, in [channel, y, x] order; gives an encrypted file. */
  encrypt(pixels: Uint8Array | Float64Array): Promise<Uint8Array>;
  /** Has the server evaluate an encrypted file; the same file again is the same job. Gives the encrypted result. */
  evaluate(
    url: string | URL,
    input: Uint8Array,
    onProgress?: (progress: JobProgress) => void,
    access?: Access,
  ): Promise<Uint8Array>;
  /** Decrypts a result that answers an input which this client encrypted. Scores are told if they are asked for; they must not
   * reach the server. */
  decrypt(bytes: Uint8Array, options?: { scores?: boolean }): Promise<Answer>;
  /** The secret key as a file that `fhe-run` reads. Whoever has it can decrypt. */
  exportKey(): Promise<Uint8Array>;
  /** Puts the secret key into the browser's storage, or removes it from there. */
  keepKey(storage: Storage): Promise<void>;
  /** Bytes of WebAssembly memory. */
  memoryBytes(): Promise<number>;
  /** Ends the worker, and with it all memory of the key. */
  close(): void;
}

/** The programs of a server. */
export function listPrograms(url: string | URL, access?: Access): Promise<Program[]>;
