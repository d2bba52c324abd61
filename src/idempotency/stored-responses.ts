import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Caller, Key } from "../domain/keys/key.ts";
import type { RandomBytes } from "../domain/keys/base62.ts";
import type { Peppers } from "../domain/keys/peppers.ts";
import type { Plan } from "../domain/limits/plan.ts";
import { retryHeaders } from "../domain/limits/headers.ts";
import { hasSettledWithin } from "../domain/waiting/wait.ts";
import type { FoundResponse, ResponseStore, WantedResponses } from "../store/store.ts";
import { nameRequest, type AllRequestNames, type RequestNames } from "./request-names.ts";
import { openReply, sealReply } from "./seal.ts";

export interface StoredResponsesServices {
  readonly store: ResponseStore;
  readonly peppers: Peppers;
  readonly random: RandomBytes;
  readonly clock: Pick<Clock, "now" | "schedule">;
}

/** Whose response it is. */
export interface ResponseOwner {
  readonly caller: Pick<Caller, "via"> & {
    readonly key: Pick<Key, "id" | "accountId" | "plan">;
  };
  readonly snapshot: { readonly plans: ReadonlyMap<string, Pick<Plan, "responsesKeepMs">> };
}

/** A response and its input, as JSON. */
export interface ResponseTexts {
  readonly id: string;
  readonly body: string;
  readonly input: string;
}

/** An input that waits for its answer. */
export interface HeldResponse {
  release(): void;
  /** Whether the response was stored in time. Releases the input. Never rejects. */
  keep(body: string): Promise<boolean>;
}

/** Larger ones, with their inputs, are not stored. */
export const mostStoredBytes = 1024 * 1024;
/** Characters of inputs that wait for their answers in a process; with more, none is stored. */
const mostHeldLength = 64 * 1024 * 1024;
const mostKeyBytes = 64 * 1024 * 1024;
/** How long an answer waits for its storing; then it says that it is not stored. */
const longestStoringMs = 250;
/** Responses that are being stored at once by a process; with more, none is added. */
const mostAtOnce = 32;
/** Found for one request; also the most bytes of a body after decompression, by default. */
const mostFoundBytes = 16 * 1024 * 1024;
/** Responses that are read from the store in one message. */
const idsAtOnce = 16;
/** Parts of the secrets. */
const purposes = { body: "stored response", input: "input of a stored response" };

/**
 * Responses that later requests of the same account may refer to. Each is encrypted under the pepper
 * and its own id, of which only a digest is stored: who has the database and the pepper, but not the
 * id, reads nothing.
 */
export class StoredResponses {
  readonly #services: StoredResponsesServices;
  #atOnce = 0;
  #heldLength = 0;

  constructor(services: StoredResponsesServices) {
    this.#services = services;
  }

  /**
   * Whether the plan of the caller stores responses. A user of the console must not read those of
   * the application, so calls of the playground neither store nor find any.
   */
  stores(owner: ResponseOwner): boolean {
    return owner.caller.via === undefined && keepMs(owner) > 0;
  }

  /** The 32 hexadecimal digits of a new id, which is part of the secret. */
  newDigits(): string {
    return Buffer.from(this.#services.random(new Uint8Array(16))).toString("hex");
  }

  /** Keeps an input until its answer is there. Undefined: it cannot be stored. */
  hold(
    owner: ResponseOwner,
    { id, input }: Pick<ResponseTexts, "id" | "input">,
  ): HeldResponse | undefined {
    const { length } = input;
    if (length > mostStoredBytes || this.#heldLength + length > mostHeldLength) return undefined;
    this.#heldLength += length;
    let isHeld = true;
    const release = (): void => {
      if (isHeld) this.#heldLength -= length;
      isHeld = false;
    };
    return {
      release,
      keep: (body) => this.#keep(owner, { id, body, input }).finally(release),
    };
  }

  async #keep(owner: ResponseOwner, { id, body, input }: ResponseTexts): Promise<boolean> {
    const { clock, random, store } = this.#services;
    if (this.#atOnce >= mostAtOnce || sizeOf(body, input) > mostStoredBytes) return false;
    const { accountId, id: keyId } = owner.caller.key;
    const names = this.#namesOf(owner, id);
    const response = {
      id: names.id,
      accountId,
      keyId,
      expiresAt: clock.now() + keepMs(owner),
      body: sealReply(body, { names, purpose: purposes.body }, random),
      input: sealReply(input, { names, purpose: purposes.input }, random),
    };
    this.#atOnce += 1;
    const storing = store.put({ response, limitBytes: mostKeyBytes }).then(
      () => true,
      // The store reports its own failures.
      () => false,
    );
    void storing.then(() => (this.#atOnce -= 1));
    if (await hasSettledWithin(storing, longestStoringMs, clock)) return storing;
    // The answer says that it is not stored.
    void storing.then(() => this.remove(owner, id)).catch(() => undefined);
    return false;
  }

  /**
   * The texts of those that are stored, by id; without `withInput`, their inputs are empty. Throws
   * 503 while the store cannot tell, and 400 for more than `mostFoundBytes`.
   */
  async find(
    owner: ResponseOwner,
    ids: readonly string[],
    withInput = false,
  ): Promise<ReadonlyMap<string, ResponseTexts>> {
    const found = new Map<string, ResponseTexts>();
    if (!this.stores(owner)) return found;
    let bytes = 0;
    for (let start = 0; start < ids.length; start += idsAtOnce) {
      const named = ids.slice(start, start + idsAtOnce).flatMap((id) => {
        const names = this.#namesOf(owner, id);
        return [names, ...names.older].map((each) => [each.id, { id, names: each }] as const);
      });
      const wanted = {
        ...this.#wanted(
          owner,
          named.map(([digest]) => digest),
        ),
        withInput,
      };
      const byDigest = new Map(named);
      for (const row of await this.#ask((store) => store.find(wanted))) {
        const { id, names } = byDigest.get(row.id) ?? {};
        const texts = names && open(row, names);
        if (id === undefined || texts === undefined) continue;
        bytes += sizeOf(texts.body, texts.input);
        if (bytes > mostFoundBytes) throw tooMuchStored();
        found.set(id, { id, ...texts });
      }
    }
    return found;
  }

  /** Whether it was there. Throws 503 while the store cannot tell. */
  async remove(owner: ResponseOwner, id: string): Promise<boolean> {
    const names = this.#namesOf(owner, id);
    const digests = [names, ...names.older].map((each) => each.id);
    return this.#ask((store) => store.remove(this.#wanted(owner, digests)));
  }

  async #ask<Answer>(ask: (store: ResponseStore) => Promise<Answer>): Promise<Answer> {
    try {
      return await ask(this.#services.store);
    } catch (cause) {
      throw new GatewayError("model_unavailable", {
        message: "Stored responses cannot be read at the moment. Please retry your request.",
        headers: retryHeaders(5_000),
        cause,
      });
    }
  }

  #wanted({ caller }: ResponseOwner, ids: readonly string[]): WantedResponses {
    return { ids, accountId: caller.key.accountId, now: this.#services.clock.now() };
  }

  #namesOf({ caller }: ResponseOwner, id: string): AllRequestNames {
    const { accountId } = caller.key;
    const identity = ["stored response", accountId, id];
    return nameRequest({ key: id, identity, content: [accountId] }, this.#services.peppers);
  }
}

/** Undefined for a row that was changed. */
function open(
  { body, input }: FoundResponse,
  names: RequestNames,
): Pick<ResponseTexts, "body" | "input"> | undefined {
  try {
    return {
      body: openReply(body, { names, purpose: purposes.body }).toString(),
      input: input ? openReply(input, { names, purpose: purposes.input }).toString() : "",
    };
  } catch {
    return undefined;
  }
}

/** At least the bytes that are stored; exact unless it is too large anyway. */
function sizeOf(body: string, input: string): number {
  const length = body.length + input.length;
  return length > mostStoredBytes ? length : Buffer.byteLength(body) + Buffer.byteLength(input);
}

function tooMuchStored(): GatewayError {
  return new GatewayError("request_too_large", {
    message: `The responses that 'input' refers to are larger than ${mostFoundBytes} bytes together.`,
    param: "input",
  });
}

function keepMs({ caller, snapshot }: ResponseOwner): number {
  return snapshot.plans.get(caller.key.plan)?.responsesKeepMs ?? 0;
}
