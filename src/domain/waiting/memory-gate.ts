import type { GatewayError } from "../errors/gateway-error.ts";
import type { EndSignal } from "./end-signal.ts";
import { Gate, type GateOptions, type Taking, type WaitEnd } from "./gate.ts";

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
 * release memory: owners in turn, those of one owner in order of arrival. While one waits for memory
 * of other owners, smaller ones that fit may pass it, up to its own size in total.
 */
export class MemoryGate {
  readonly gate: Gate;
  /** By owner, and by account. */
  readonly #owners = new Map<string, number>();
  readonly #accounts = new Map<string, number>();
  #heldBytes = 0;
  #queueLimit = 0;
  /** The first one that waits for memory of other owners. */
  #first: MemoryHold | undefined;
  /** How much smaller ones may still take before it. */
  #passableBytes = 0;

  constructor(clock: GateOptions["clock"]) {
    this.gate = new Gate({ clock, limit: () => this.#queueLimit });
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  hold(owner: MemoryOwner, limits: MemoryLimits): MemoryHold {
    this.#queueLimit = limits.queue;
    return new MemoryHold(this, owner, limits);
  }

  /** Use it by way of a `MemoryHold`. */
  take(hold: MemoryHold, bytes: number): Taking {
    const { owner, limits } = hold;
    const { allBytes, ownBytes } = limits;
    const own = (this.#owners.get(owner.name) ?? 0) + bytes;
    const ofAccount = (this.#accounts.get(owner.account) ?? 0) + bytes;
    if (own > ownBytes || ofAccount > Math.max(ownBytes, allBytes / 2)) {
      this.forgetFirst(hold);
      return "skip";
    }
    if (this.#heldBytes + bytes > allBytes) {
      if (this.#first === undefined) [this.#first, this.#passableBytes] = [hold, bytes];
      return "skip";
    }
    if (this.#first !== undefined && this.#first !== hold) {
      if (bytes > this.#passableBytes) return "skip";
      this.#passableBytes -= bytes;
    }
    this.forgetFirst(hold);
    this.#count(owner, bytes);
    return "taken";
  }

  /** Counts so many more, or fewer. */
  change(owner: MemoryOwner, bytes: number): void {
    this.#count(owner, bytes);
    if (bytes < 0) this.gate.serve();
  }

  forgetFirst(hold: MemoryHold): void {
    if (this.#first === hold) this.#first = undefined;
  }

  #count({ name, account }: MemoryOwner, bytes: number): void {
    this.#heldBytes += bytes;
    add(this.#owners, name, bytes);
    add(this.#accounts, account, bytes);
  }
}

function add(counts: Map<string, number>, name: string, bytes: number): void {
  const held = (counts.get(name) ?? 0) + bytes;
  if (held === 0) counts.delete(name);
  else counts.set(name, held);
}

/** The memory reserved for one body, or the images of one call. */
export class MemoryHold {
  readonly owner: MemoryOwner;
  readonly limits: MemoryLimits;
  readonly #memory: MemoryGate;
  #heldBytes = 0;
  #isReserved = false;
  /** The request itself, and the work that keeps it. */
  #keepers = 1;

  constructor(memory: MemoryGate, owner: MemoryOwner, limits: MemoryLimits) {
    this.#memory = memory;
    this.owner = owner;
    this.limits = limits;
  }

  /**
   * Takes the most that may be needed: at once, or when there is room. A second call does nothing:
   * those that hold a part and wait for more could wait for each other.
   * Throws what the owner says, or the reason of its signal.
   */
  reserve(bytes: number): void | Promise<void> {
    if (this.#isReserved) return undefined;
    this.#isReserved = true;
    const { signal } = this.owner.request;
    if (signal.aborted) return Promise.reject(signal.reason);
    const isWaiting = this.#memory.gate.open.groups.has(this.owner.name);
    if (!isWaiting && this.#take(bytes) === "taken") return undefined;
    return this.#wait(bytes);
  }

  #wait(bytes: number): Promise<void> {
    const { owner, limits } = this;
    const { signal } = owner.request;
    return new Promise((resolve, reject) => {
      const ended = (how: WaitEnd): void => {
        this.#memory.forgetFirst(this);
        if (how === "served") resolve();
        else reject(how === "left" ? signal.reason : owner.full());
        // It may have been abandoned while it waited.
        if (this.#keepers === 0) this.#hold(0);
      };
      const take = (): Taking => this.#take(bytes);
      this.#memory.gate.wait({ group: owner.name, take, ended }, { signal, waitMs: limits.waitMs });
    });
  }

  #take(bytes: number): Taking {
    const taking = this.#memory.take(this, bytes);
    if (taking === "taken") this.#heldBytes = bytes;
    return taking;
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
    if (more !== 0) this.#memory.change(this.owner, more);
  }
}
