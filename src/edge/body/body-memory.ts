import type { Clock } from "../../domain/clock.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { retryHeaders } from "../../domain/limits/headers.ts";

/** How much memory the bodies of unanswered requests may hold. */
export interface BodyMemoryLimits {
  /** All bodies together. */
  readonly bodyMemoryBytes: number;
  /** The bodies of one owner. */
  readonly bodyMemoryPerKeyBytes: number;
  /** How long a body that has not been read may wait for memory. */
  readonly bodyMemoryWaitMs: number;
  /** How many bodies wait at once. */
  readonly bodyMemoryQueue: number;
}

/** The memory reserved for one body. */
export interface BodyHold {
  /**
   * Takes the most that the body may need: at once, or when there is room. A second call does
   * nothing: bodies that hold a part and wait for more could wait for each other.
   * Throws 503, or the reason of the request's signal.
   */
  reserve(bytes: number): void | Promise<void>;
  /** Gives back the rest. */
  shrinkTo(bytes: number): void;
  release(): void;
}

export interface BodyOwner {
  readonly name: string;
  /** Its abort ends a wait. */
  readonly request: Pick<Request, "signal">;
  /** Whether the memory is for the answer, whose request was read. */
  readonly isAnswer?: boolean;
}

/**
 * Limits the memory of large bodies. A body that does not fit waits, unread, until others release
 * memory: owners in turn, the bodies of one owner in order of arrival. While the first body waits,
 * smaller ones that fit may pass it, up to its own size in total.
 */
export class BodyMemory {
  readonly #clock: Pick<Clock, "schedule">;
  /** Owners that hold or wait for memory, the next in turn first. */
  readonly #accounts = new Map<string, Account>();
  #heldBytes = 0;
  #waiting = 0;
  /** The first body that waits for memory of other owners. */
  #first: Waiter | undefined;

  constructor(clock: Pick<Clock, "schedule">) {
    this.#clock = clock;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  hold(owner: BodyOwner, limits: BodyMemoryLimits): BodyHold {
    return new CountedHold({
      take: (bytes, onTaken) => {
        const wanted = { bytes, limits, onTaken };
        return this.#takeNow(owner.name, wanted) ? undefined : this.#wait(owner, wanted);
      },
      give: (bytes) => this.#give(owner.name, bytes),
    });
  }

  #takeNow(name: string, wanted: Wanted): boolean {
    const account = this.#accounts.get(name) ?? newAccount();
    if (account.waiters.size > 0 || !this.#mayPass(wanted)) return false;
    if (this.#whatIsFull(account, wanted) !== undefined) return false;
    this.#accounts.set(name, account);
    this.#take(account, wanted);
    return true;
  }

  /** Whether the body may pass the first waiting one. */
  #mayPass({ bytes }: Wanted): boolean {
    return this.#first === undefined || bytes <= this.#first.passableBytes;
  }

  #wait(owner: BodyOwner, wanted: Wanted): Promise<void> {
    const { name, request } = owner;
    const { signal } = request;
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#waiting >= wanted.limits.bodyMemoryQueue) return Promise.reject(memoryFull(owner));
    const account = this.#accounts.get(name) ?? newAccount();
    this.#accounts.set(name, account);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        account.waiters.delete(waiter);
        this.#waiting -= 1;
        cancel();
        signal.removeEventListener("abort", onAbort);
      };
      const fail = (reason: unknown): void => {
        leave();
        this.#forget(name, account);
        reject(reason);
        this.#letIn();
      };
      const onAbort = (): void => fail(signal.reason);
      const grant = (): void => {
        leave();
        this.#take(account, wanted);
        resolve();
      };
      const waiter: Waiter = { ...wanted, passableBytes: wanted.bytes, grant };
      const cancel = this.#clock.schedule(
        () => fail(memoryFull(owner)),
        wanted.limits.bodyMemoryWaitMs,
      );
      signal.addEventListener("abort", onAbort, { once: true });
      account.waiters.add(waiter);
      this.#waiting += 1;
      if (this.#whatIsFull(account, wanted) === "all") this.#first ??= waiter;
    });
  }

  #take(account: Account, { bytes, onTaken }: Wanted): void {
    account.heldBytes += bytes;
    this.#heldBytes += bytes;
    if (this.#first !== undefined) this.#first.passableBytes -= bytes;
    onTaken();
  }

  #give(name: string, bytes: number): void {
    const account = this.#accounts.get(name);
    if (account === undefined) throw new Error("the owner holds no memory");
    account.heldBytes -= bytes;
    this.#heldBytes -= bytes;
    this.#forget(name, account);
    if (this.#waiting > 0) this.#letIn();
  }

  #forget(name: string, account: Account): void {
    if (account.heldBytes === 0 && account.waiters.size === 0) this.#accounts.delete(name);
  }

  /** Serves one body of each owner in turn, as long as the next one fits. */
  #letIn(): void {
    this.#first = undefined;
    // An owner that got memory moves to the end of the map, where this loop meets it again.
    for (const [name, account] of this.#accounts) {
      const [waiter] = account.waiters;
      if (waiter === undefined) continue;
      const full = this.#whatIsFull(account, waiter);
      if (full === "all") this.#first ??= waiter;
      if (full !== undefined || !this.#mayPass(waiter)) continue;
      this.#accounts.delete(name);
      this.#accounts.set(name, account);
      waiter.grant();
    }
  }

  #whatIsFull(account: Account, { bytes, limits }: Wanted): "account" | "all" | undefined {
    if (account.heldBytes + bytes > limits.bodyMemoryPerKeyBytes) return "account";
    return this.#heldBytes + bytes > limits.bodyMemoryBytes ? "all" : undefined;
  }
}

interface HoldOptions {
  /** Calls `onTaken` when the bytes are taken. */
  readonly take: (bytes: number, onTaken: () => void) => void | Promise<void>;
  readonly give: (bytes: number) => void;
}

class CountedHold implements BodyHold {
  readonly #options: HoldOptions;
  #heldBytes = 0;
  #isReserved = false;
  #isReleased = false;

  constructor(options: HoldOptions) {
    this.#options = options;
  }

  reserve(bytes: number): void | Promise<void> {
    if (this.#isReserved) return undefined;
    this.#isReserved = true;
    return this.#options.take(bytes, () => {
      this.#heldBytes = bytes;
      // A body may be abandoned while it waits.
      if (this.#isReleased) this.release();
    });
  }

  shrinkTo(bytes: number): void {
    const spareBytes = this.#heldBytes - bytes;
    if (spareBytes <= 0) return;
    this.#heldBytes = bytes;
    this.#options.give(spareBytes);
  }

  release(): void {
    this.#isReleased = true;
    this.shrinkTo(0);
  }
}

function newAccount(): Account {
  return { heldBytes: 0, waiters: new Set() };
}

interface Account {
  heldBytes: number;
  /** Longest wait first. */
  readonly waiters: Set<Waiter>;
}

interface Wanted {
  readonly bytes: number;
  readonly limits: BodyMemoryLimits;
  /** Called synchronously when the memory is taken. */
  readonly onTaken: () => void;
}

interface Waiter extends Wanted {
  /** How much smaller bodies may still take while this one is the first. */
  passableBytes: number;
  grant(): void;
}

function memoryFull({ isAnswer = false }: BodyOwner): GatewayError {
  return new GatewayError("model_unavailable", {
    message:
      `The gateway holds as many large ${isAnswer ? "answers" : "requests"} as it can at the ` +
      "moment. Please retry your request, and send fewer large ones at once.",
    headers: {
      ...retryHeaders(2_000),
      // The unread rest of the body must not be parsed as the next request.
      ...(!isAnswer && { connection: "close" }),
    },
    explanation: {
      rule: "body_memory_full",
      summary:
        "The bodies and answers of open requests used all that `http.body_memory` or " +
        "`http.body_memory_per_key` allows for longer than `http.body_memory_wait`.",
    },
  });
}
