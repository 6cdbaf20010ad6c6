// Secret keys in the browser's storage: one file for every program, in the same form as `fhe-run` has it.

const NAME = "fhec";
const STORE = "keys";

/** Runs one request in a transaction of its own; done when the transaction is. */
async function within(mode, request) {
  const database = await new Promise((resolve, reject) => {
    const opening = indexedDB.open(NAME, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = opening.onblocked = () => reject(refused());
  });
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const asked = request(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(asked.result);
      transaction.onerror = transaction.onabort = () => reject(refused());
    });
  } finally {
    database.close();
  }
}

function refused() {
  const error = new Error("the browser keeps nothing here (a private window?): keep the key in memory, or export it");
  error.code = "storage";
  return error;
}

/** The key of a program, or null; also where the browser keeps nothing. */
export async function keptKey(program) {
  const found = await within("readonly", (store) => store.get(program)).catch(() => null);
  return found instanceof Uint8Array ? found : null;
}

export async function keep(program, file) {
  await within("readwrite", (store) => store.put(file, program));
}

export async function forget(program) {
  await within("readwrite", (store) => store.delete(program));
}
