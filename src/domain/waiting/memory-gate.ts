import type { Clock } from "../clock.ts";
import type { EndSignal } from "./end-signal.ts";
import type { GatewayError } from "../errors/gateway-error.ts";

/** How much memory may be held. */
export interface MemoryLimits {
  /** By all together. */
  readonly allBytes: number;
  /** By one owner; its account may have as much, or half of all. */
  readonly ownBytes: number;
  /** How long a wait lasts. */
  readonly waitMs: number;
  /** How many wait at once. */
  readonly queue: number;
}

export interface MemoryOwner {
  /** A key, or an address. */
  readonly name: string;
  /** All owners of one account together leave a half for others. */
  readonly account: string;
  /** Its abort ends a wait. */
  readonly request: { readonly signal: EndSignal };
  /** The refusal of who waited too long, or found the queue full. */
  readonly full: () => GatewayError;
}

/**
 * Limits the memory of large bodies, or of images. What does not fit waits, unread, until others
 * release memory: owners in turn, those of one owner in order of arrival. While the first one waits,
 * smaller ones that fit may pass it, up to its own size in total.
 */
export class MemoryGate {
  readonly #clock: Pick<Clock, "schedule">;
  /** Owners that hold or wait for memory, the next in turn first. */
  readonly #owners = new Map<string, OwnerState>();
  readonly #heldByAccount = new Map<string, number>();
  #heldBytes = 0;
  #waiting = 0;
  /** The first one that waits for memory of other owners. */
  #first: Waiter | undefined;

  constructor(clock: Pick<Clock, "schedule">) {
    this.#clock = clock;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  hold(owner: MemoryOwner, limits: MemoryLimits): MemoryHold {
    return new MemoryHold(this, owner, limits);
  }

  /** Use it by way of a `MemoryHold`, which calls back when the bytes are taken. */
  take(wanted: Wanted): void | Promise<void> {
    const { owner, bytes } = wanted;
    const state = this.#owners.get(owner.name) ?? newOwnerState();
    const isTurn = state.waiters.size === 0 && this.#mayPass(bytes);
    if (!isTurn || this.#whatIsFull(state, wanted) !== undefined) return this.#wait(state, wanted);
    this.#owners.set(owner.name, state);
    this.#grant(state, wanted);
    return undefined;
  }

  /** Counts so many more, or fewer. */
  change({ name, account }: MemoryOwner, bytes: number): void {
    const state = this.#owners.get(name);
    if (state === undefined) throw new Error("the owner holds no memory");
    this.#count(state, account, bytes);
    this.#forget(name, state);
    if (bytes < 0 && this.#waiting > 0) this.#letIn();
  }

  /** Whether so many bytes may be taken before the first that waits. */
  #mayPass(bytes: number): boolean {
    return this.#first === undefined || bytes <= this.#first.passableBytes;
  }

  #wait(state: OwnerState, wanted: Wanted): Promise<void> {
    const { owner, limits } = wanted;
    const { signal } = owner.request;
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#waiting >= limits.queue) return Promise.reject(owner.full());
    this.#owners.set(owner.name, state);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        state.waiters.delete(waiter);
        this.#waiting -= 1;
        cancel();
        signal.removeEventListener("abort", onAbort);
      };
      const fail = (reason: unknown): void => {
        leave();
        this.#forget(owner.name, state);
        reject(reason);
        this.#letIn();
      };
      const onAbort = (): void => fail(signal.reason);
      const enter = (): void => {
        leave();
        this.#grant(state, wanted);
        resolve();
      };
      const waiter: Waiter = { ...wanted, passableBytes: wanted.bytes, enter };
      const cancel = this.#clock.schedule(() => fail(owner.full()), limits.waitMs);
      signal.addEventListener("abort", onAbort, { once: true });
      state.waiters.add(waiter);
      this.#waiting += 1;
      if (this.#whatIsFull(state, wanted) === "all") this.#first ??= waiter;
    });
  }

  #grant(state: OwnerState, { bytes, owner, onTaken }: Wanted): void {
    this.#count(state, owner.account, bytes);
    if (this.#first !== undefined) this.#first.passableBytes -= bytes;
    onTaken();
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

  /** Serves one of each owner in turn, as long as the next one fits. */
  #letIn(): void {
    this.#first = undefined;
    // An owner that got memory moves to the end of the map, where this loop meets it again.
    for (const [name, state] of this.#owners) {
      const [waiter] = state.waiters;
      if (waiter === undefined) continue;
      const full = this.#whatIsFull(state, waiter);
      if (full === "all") this.#first ??= waiter;
      if (full !== undefined || !this.#mayPass(waiter.bytes)) continue;
      this.#owners.delete(name);
      this.#owners.set(name, state);
      waiter.enter();
    }
  }

  #whatIsFull(
    state: OwnerState,
    { bytes, limits: { ownBytes, allBytes }, owner }: Wanted,
  ): "owner" | "all" | undefined {
    if (state.heldBytes + bytes > ownBytes) return "owner";
    const held = (this.#heldByAccount.get(owner.account) ?? 0) + bytes;
    if (held > Math.max(ownBytes, allBytes / 2)) return "owner";
    return this.#heldBytes + bytes > allBytes ? "all" : undefined;
  }
}

/** The memory reserved for one body, or the images of one call. */
export class MemoryHold {
  readonly #gate: MemoryGate;
  readonly #owner: MemoryOwner;
  readonly #limits: MemoryLimits;
  #heldBytes = 0;
  #isReserved = false;
  /** The request itself, and the work that keeps it. */
  #keepers = 1;

  constructor(gate: MemoryGate, owner: MemoryOwner, limits: MemoryLimits) {
    this.#gate = gate;
    this.#owner = owner;
    this.#limits = limits;
  }

  /**
   * Takes the most that may be needed: at once, or when there is room. A second call does nothing:
   * those that hold a part and wait for more could wait for each other.
   * Throws what the owner says, or the reason of its signal.
   */
  reserve(bytes: number): void | Promise<void> {
    if (this.#isReserved) return undefined;
    this.#isReserved = true;
    const onTaken = (): void => {
      this.#heldBytes = bytes;
      // It may be abandoned while it waits.
      if (this.#keepers === 0) this.#hold(0);
    };
    return this.#gate.take({ owner: this.#owner, limits: this.#limits, bytes, onTaken });
  }

  /** What is taken of what was reserved: less, or more. */
  becomes(bytes: number): void {
    if (this.#heldBytes > 0) this.#hold(bytes);
  }

  /** What is taken beyond what was counted. Nothing for a body that is too small to count. */
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
    if (more !== 0) this.#gate.change(this.#owner, more);
  }
}

function newOwnerState(): OwnerState {
  return { heldBytes: 0, waiters: new Set() };
}

interface OwnerState {
  heldBytes: number;
  /** Longest wait first. */
  readonly waiters: Set<Waiter>;
}

interface Wanted {
  readonly owner: MemoryOwner;
  readonly limits: MemoryLimits;
  readonly bytes: number;
  /** Called synchronously when the memory is taken. */
  readonly onTaken: () => void;
}

interface Waiter extends Wanted {
  /** How much smaller ones may still take while this one is the first. */
  passableBytes: number;
  enter(): void;
}
