import { GatewayError } from "../domain/gateway-error.ts";
import type { StoredReply } from "../storage/control-store.ts";
import type { Operation, OperationCall, ReplyKeeper } from "./operation.ts";
import { openReply, sealReply, type ReplySeal } from "./reply-seal.ts";
import type { AdminServices } from "./services.ts";
import { WaitingCallers } from "./waiting-callers.ts";

/** How long a request is known under its key. */
const knownMs = 24 * 3_600_000;
/** How long an answer with a secret may be shown again: for answers that were lost on the way. */
const secretShownMs = 10 * 60_000;

export interface IdempotentRequest {
  /** What the caller chose to tell this request by. */
  readonly key: string;
  readonly operation: Operation;
  readonly call: OperationCall;
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: unknown;
  readonly body: unknown;
}

export interface Answered {
  readonly status: number;
  readonly body: unknown;
  readonly isReplayed: boolean;
}

/** The signal fires when nobody waits for the answer any more. */
type Work = (replies: ReplyKeeper, signal: AbortSignal) => Promise<unknown>;

interface RunningRequest {
  readonly requestDigest: string;
  readonly answer: Promise<Answered>;
  readonly waiting: WaitingCallers;
}

/**
 * Runs a change once for all requests of one principal with one idempotency key: while it runs,
 * equal requests wait for it; afterwards they get the answer that was kept in the transaction of
 * the change. A request that failed has changed nothing and may be tried again.
 */
export class Idempotency {
  readonly #services: Pick<AdminServices, "store" | "clock" | "random" | "digest">;
  readonly #running = new Map<string, RunningRequest>();

  constructor(services: Pick<AdminServices, "store" | "clock" | "random" | "digest">) {
    this.#services = services;
  }

  async run(request: IdempotentRequest, work: Work): Promise<Answered> {
    const names = this.#nameRequest(request);
    const { signal } = request.call;
    let running = this.#running.get(names.id);
    while (running?.waiting.isAbandoned === true) {
      await running.answer.catch(() => undefined);
      running = this.#running.get(names.id);
    }
    if (running !== undefined) {
      if (running.requestDigest !== names.requestDigest) throw keyReused();
      running.waiting.join(signal);
      return { ...(await running.answer), isReplayed: true };
    }
    const waiting = new WaitingCallers(signal);
    const answer = this.#once(request, names, (replies) => work(replies, waiting.signal));
    this.#running.set(names.id, { requestDigest: names.requestDigest, answer, waiting });
    try {
      return await answer;
    } finally {
      this.#running.delete(names.id);
    }
  }

  async #once(
    request: IdempotentRequest,
    names: ReplySeal,
    work: (replies: ReplyKeeper) => Promise<unknown>,
  ): Promise<Answered> {
    const { store } = this.#services;
    const known = await store.read((view) => view.replies.get(names.id));
    if (this.#isKnown(known)) return this.#replay(known, names);
    let isKept = false;
    const keeper: ReplyKeeper = {
      expectNone: async (transaction) => {
        const stored = await transaction.replies.get(names.id);
        if (this.#isKnown(stored)) throw new DoneElsewhere(stored);
      },
      keep: async (transaction, answer) => {
        await transaction.replies.put(this.#toReply(request.operation, names, answer));
        isKept = true;
      },
    };
    try {
      const body = await work(keeper);
      if (!isKept) await store.change((transaction) => keeper.keep(transaction, body));
      return { status: request.operation.status, body, isReplayed: false };
    } catch (error) {
      if (error instanceof DoneElsewhere) return this.#replay(error.reply, names);
      throw error;
    }
  }

  /** The digests do not tell the key or the request: both may hold what must not be stored. */
  #nameRequest({ key, operation, call, parameters, query, body }: IdempotentRequest): ReplySeal {
    const { userId, kind, role, accountId } = call.principal;
    const digest = (value: unknown): string =>
      Buffer.from(this.#services.digest(JSON.stringify(value))).toString("hex");
    return {
      key,
      // A principal that may see less than before is another one: it must not see what was kept.
      id: digest(["idempotency key", userId ?? kind, role, accountId ?? null, key]),
      requestDigest: digest(["request", operation.id, parameters, query ?? {}, body ?? {}]),
    };
  }

  #isKnown(reply: StoredReply | undefined): reply is StoredReply {
    return reply !== undefined && this.#services.clock.now() - reply.createdAt < knownMs;
  }

  #toReply(operation: Operation, names: ReplySeal, answer: unknown): StoredReply {
    const now = this.#services.clock.now();
    return {
      id: names.id,
      requestDigest: names.requestDigest,
      status: operation.status,
      body: sealReply(JSON.stringify(answer), names, this.#services),
      createdAt: now,
      shownUntil: now + (operation.hasSecret === true ? secretShownMs : knownMs),
    };
  }

  #replay(reply: StoredReply, names: ReplySeal): Answered {
    if (reply.requestDigest !== names.requestDigest) throw keyReused();
    if (reply.body === undefined || this.#services.clock.now() >= reply.shownUntil) {
      throw new GatewayError("reply_not_shown_again", {
        message:
          "This request was done. Its answer held a secret, which is not shown any more: rotate " +
          "the key for another, under a new Idempotency-Key.",
      });
    }
    const text = openReply(reply.body, names, this.#services);
    return { status: reply.status, body: JSON.parse(text), isReplayed: true };
  }
}

/** Another process did the same request after this one looked for it. */
class DoneElsewhere extends Error {
  readonly reply: StoredReply;

  constructor(reply: StoredReply) {
    super("the request was done by another process");
    this.reply = reply;
  }
}

function keyReused(): GatewayError {
  return new GatewayError("idempotency_key_reused", {
    message: "This Idempotency-Key was used for another request. Use a new one for each change.",
    param: "Idempotency-Key",
  });
}
