import type { ReadingCall } from "../../src/dialects/chat-handler.ts";
import { StoredResponses } from "../../src/idempotency/stored-responses.ts";
import { StorageUnavailable } from "../../src/store/errors.ts";
import type { ResponseStore, StoredResponse } from "../../src/store/store.ts";
import type { RandomBytes } from "../../src/domain/keys/base62.ts";
import { ManualClock } from "./manual-clock.ts";
import { plainKey } from "./plain-key.ts";
import { testPeppers } from "./test-peppers.ts";

/** Responses in memory, without a limit. */
export class MemoryResponseStore implements ResponseStore {
  readonly rows = new Map<string, StoredResponse>();
  /** Set while the store cannot be reached. */
  isDown = false;
  /** What a change waits for. */
  until: Promise<void> = Promise.resolve();

  async put({ response }: Parameters<ResponseStore["put"]>[0]): Promise<void> {
    await this.#ready();
    this.rows.set(response.id, response);
  }

  async find({ ids, accountId, now }: Parameters<ResponseStore["find"]>[0]) {
    await this.#ready();
    return [...this.rows.values()].filter(
      (row) => ids.includes(row.id) && row.accountId === accountId && row.expiresAt > now,
    );
  }

  async remove(wanted: Parameters<ResponseStore["remove"]>[0]): Promise<boolean> {
    const found = await this.find({ ...wanted, withInput: false });
    return found.map(({ id }) => this.rows.delete(id)).includes(true);
  }

  async #ready(): Promise<void> {
    await this.until;
    if (this.isDown) throw new StorageUnavailable("down");
  }
}

/** Stored responses in memory, and calls of keys whose plan keeps them for a time. */
export function responseWorld(peppers = testPeppers(), store = new MemoryResponseStore()) {
  const clock = new ManualClock();
  let next = 0;
  const random: RandomBytes = (bytes) => bytes.fill((next += 1));
  const stored = new StoredResponses({ store, peppers, random, clock });
  const callOf = (accountId = "acct_a", responsesKeepMs = 3_600_000): ReadingCall => ({
    caller: { key: plainKey({ accountId }) },
    snapshot: { plans: new Map([["standard", { responsesKeepMs }]]) },
    headers: new Headers(),
    memory: { takesMore: () => undefined },
  });
  return { store, clock, stored, callOf };
}
