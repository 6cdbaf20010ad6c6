// Every call of the client with its types, for types.mjs. Nothing runs it.

import { Answer, Client, ClientError, Facts, JobProgress, KeyProgress, listPrograms, Program } from "./client.js";

export async function use(file: Uint8Array, signal: AbortSignal): Promise<string> {
  const programs: Program[] = await listPrograms("https://fhe.example", { token: "t", signal });
  const client: Client = await Client.create(file, { storage: "kept", program: programs[0].id, insecure: false });
  const other: Client = await Client.connect(new URL("https://fhe.example"), { storage: "indexeddb", token: "t" });
  const facts: Facts = client.facts;
  try {
    await client.uploadKeys("/", (progress: KeyProgress) => progress.sentBytes / progress.totalBytes, { signal });
    const has: boolean = await client.hasKeys("/");
    const input: Uint8Array = await client.encrypt(new Float64Array(facts.height * facts.width));
    const result = await client.evaluate("/", input, ({ layer, fraction }: JobProgress) => `${layer ?? ""}${fraction}`);
    const answer: Answer = await client.decrypt(result);
    const scores: readonly number[] | undefined = (await client.decrypt(result, { scores: true })).scores;
    const key: Uint8Array = await client.exportKey();
    await other.keepKey("memory");
    const bytes: number = await other.memoryBytes();
    return `${has} ${answer.label} ${scores?.length} ${key.length} ${bytes}`;
  } catch (error) {
    return error instanceof ClientError ? error.code : "";
  } finally {
    client.close();
  }
}

// @ts-expect-error: pictures are bytes or doubles
export const wrong = (client: Client) => client.encrypt([1, 2, 3]);
// @ts-expect-error: facts are not to be changed
export const changed = (client: Client) => (client.facts.width = 3);
