import type { Clock } from "../../domain/clock.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { retryHeaders } from "../../domain/limits/headers.ts";

/** How much memory the bodies of requests may hold that may still be sent. */
export interface BodyMemoryLimits {
  /** All bodies together. */
  readonly bodyMemoryBytes: number;
  /** The bodies of one owner; its account may have twice as much, or half of all. */
  readonly bodyMemoryPerKeyBytes: number;
  /** How long a body that has not been read may wait for memory. */
  readonly bodyMemoryWaitMs: number;
  /** How many bodies wait at once. */
  readonly bodyMemoryQueue: number;
}

export interface BodyOwner {
  /** A key, or an address. */
  readonly name: string;
  /** All owners of one account together leave a half for others. */
  readonly account: string;
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
  readonly #owners = new Map<string, OwnerState>();
  readonly #heldByAccount = new Map<string, number>();
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
    return new BodyHold(
      (bytes, onTaken) => {
        const wanted = { bytes, limits, onTaken, account: owner.account };
        return this.#takeNow(owner.name, wanted) ? undefined : this.#wait(owner, wanted);
      },
      (bytes) => this.#change(owner, bytes),
    );
  }

  #takeNow(name: string, wanted: Wanted): boolean {
    const state = this.#owners.get(name) ?? newOwnerState();
    if (state.waiters.size > 0 || !this.#mayPass(wanted)) return false;
    if (this.#whatIsFull(state, wanted) !== undefined) return false;
    this.#owners.set(name, state);
    this.#take(state, wanted);
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
    const state = this.#owners.get(name) ?? newOwnerState();
    this.#owners.set(name, state);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        state.waiters.delete(waiter);
        this.#waiting -= 1;
        cancel();
        signal.removeEventListener("abort", onAbort);
      };
      const fail = (reason: unknown): void => {
        leave();
        this.#forget(name, state);
        reject(reason);
        this.#letIn();
      };
      const onAbort = (): void => fail(signal.reason);
      const grant = (): void => {
        leave();
        this.#take(state, wanted);
        resolve();
      };
      const waiter: Waiter = { ...wanted, passableBytes: wanted.bytes, grant };
      const cancel = this.#clock.schedule(
        () => fail(memoryFull(owner)),
        wanted.limits.bodyMemoryWaitMs,
      );
      signal.addEventListener("abort", onAbort, { once: true });
      state.waiters.add(waiter);
      this.#waiting += 1;
      if (this.#whatIsFull(state, wanted) === "all") this.#first ??= waiter;
    });
  }

  #take(state: OwnerState, { bytes, account, onTaken }: Wanted): void {
    this.#count(state, account, bytes);
    if (this.#first !== undefined) this.#first.passableBytes -= bytes;
    onTaken();
  }

  #change({ name, account }: BodyOwner, bytes: number): void {
    const state = this.#owners.get(name);
    if (state === undefined) throw new Error("the owner holds no memory");
    this.#count(state, account, bytes);
    this.#forget(name, state);
    if (bytes < 0 && this.#waiting > 0) this.#letIn();
  }

  #count(state: OwnerState, account: string, bytes: number): void {
    state.heldBytes += bytes;
    this.#heldBytes += bytes;
    const held = (this.#heldByAccount.get(account) ?? 0) + bytes;
    if (held === 0) this.#heldByAccount.delete(account);
    else this.#heldByAccount.set(account, held);
  }

  #forget(name: string, state: OwnerState): void {
    if (state.heldBytes === 0 && state.waiters.size === 0) this.#owners.delete(name);
  }

  /** Serves one body of each owner in turn, as long as the next one fits. */
  #letIn(): void {
    this.#first = undefined;
    // An owner that got memory moves to the end of the map, where this loop meets it again.
    for (const [name, state] of this.#owners) {
      const [waiter] = state.waiters;
      if (waiter === undefined) continue;
      const full = this.#whatIsFull(state, waiter);
      if (full === "all") this.#first ??= waiter;
      if (full !== undefined || !this.#mayPass(waiter)) continue;
      this.#owners.delete(name);
      this.#owners.set(name, state);
      waiter.grant();
    }
  }

  #whatIsFull(state: OwnerState, { bytes, limits, account }: Wanted): "owner" | "all" | undefined {
    const { bodyMemoryPerKeyBytes: ownBytes, bodyMemoryBytes: allBytes } = limits;
    if (state.heldBytes + bytes > ownBytes) return "owner";
    const held = (this.#heldByAccount.get(account) ?? 0) + bytes;
    if (held > Math.max(ownBytes, allBytes / 2)) return "owner";
    return this.#heldBytes + bytes > allBytes ? "all" : undefined;
  }
}

/** The memory reserved for one body. */
export class BodyHold {
  readonly #take: TakeMemory;
  readonly #change: (bytes: number) => void;
  #heldBytes = 0;
  #isReserved = false;
  /** The request itself, and the work that keeps it. */
  #keepers = 1;

  /** `change` counts so many more, or fewer. */
  constructor(take: TakeMemory, change: (bytes: number) => void) {
    this.#take = take;
    this.#change = change;
  }

  /**
   * Takes the most that the body may need: at once, or when there is room. A second call does
   * nothing: bodies that hold a part and wait for more could wait for each other.
   * Throws 503, or the reason of the request's signal.
   */
  reserve(bytes: number): void | Promise<void> {
    if (this.#isReserved) return undefined;
    this.#isReserved = true;
    return this.#take(bytes, () => {
      this.#heldBytes = bytes;
      // A body may be abandoned while it waits.
      if (this.#keepers === 0) this.#hold(0);
    });
  }

  /** What a body that was reserved for takes: less than was reserved, or more. */
  becomes(bytes: number): void {
    if (this.#heldBytes > 0) this.#hold(bytes);
  }

  /** What a body takes beyond what was counted. Nothing for a body that is too small to count. */
  takesMore(bytes: number): void {
    this.becomes(this.#heldBytes + bytes);
  }

  /** Keeps it until the returned function is called, also when the answer has begun by then. */
  keep(): () => void {
    let isKept = true;
    this.#keepers += 1;
    return () => {
      if (!isKept) return;
      isKept = false;
      this.release();
    };
  }

  /** Gives it back, once nobody keeps it. */
  release(): void {
    this.#keepers -= 1;
    if (this.#keepers === 0) this.#hold(0);
  }

  #hold(bytes: number): void {
    const more = bytes - this.#heldBytes;
    this.#heldBytes = bytes;
    if (more !== 0) this.#change(more);
  }
}

/** Calls `onTaken` when the bytes are taken. */
type TakeMemory = (bytes: number, onTaken: () => void) => void | Promise<void>;

function newOwnerState(): OwnerState {
  return { heldBytes: 0, waiters: new Set() };
}

interface OwnerState {
  heldBytes: number;
  /** Longest wait first. */
  readonly waiters: Set<Waiter>;
}

interface Wanted {
  readonly bytes: number;
  readonly account: string;
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
