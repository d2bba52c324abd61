import type { Pool } from "../../src/domain/limits/capacity.ts";
import type { CapacityClass } from "../../src/domain/usage/usage.ts";
import type {
  CapacityGate,
  EnterResult,
  Place,
  PlaceRequest,
  PlaceWait,
} from "../../src/admission/capacity/place.ts";
import type { Snapshot } from "../../src/snapshot/snapshot.ts";
import { changeGraceMs, type KeyRegister } from "./key-register.ts";
import type { SharedLimiter } from "./limiter.ts";
import { violate, type World } from "./world.ts";

type Where = Parameters<CapacityGate["tryEnter"]>[0];

interface Wait {
  readonly keyId: string;
  readonly accountId: string;
  readonly capacityClass: CapacityClass;
  readonly since: number;
  readonly upstream: string;
}

/** The state of one pool, or of an upstream's targets without a pool. */
interface Gate {
  readonly name: string;
  readonly pool: Pool | undefined;
  readonly places: () => number;
  readonly held: Map<CapacityClass, number>;
  /** Places held within guarantees. */
  readonly heldByKey: Map<string, number>;
  /** Pending requests, which may already hold a place. */
  readonly asking: Set<object>;
  readonly waits: Set<Wait>;
}

export interface AuditOptions {
  readonly world: World;
  readonly process: string;
  readonly keys: KeyRegister;
  readonly limiter: SharedLimiter;
  /** The number of places of an upstream, by its name. */
  readonly placesAt: (upstream: string) => number;
}

const leastMs = 1e-6;

/** Wraps the pools of a process and checks every decision. */
export class CapacityAudit implements CapacityGate {
  readonly #inner: CapacityGate;
  readonly #options: AuditOptions;
  readonly #gates = new Map<string, Gate>();
  #waited = 0;

  constructor(inner: CapacityGate, options: AuditOptions) {
    this.#inner = inner;
    this.#options = options;
  }

  /** The number of places that were not released. */
  get held(): number {
    let held = 0;
    for (const gate of this.#gates.values()) held += heldAt(gate);
    return held;
  }

  /** The number of calls that got their place from a queue. */
  get waited(): number {
    return this.#waited;
  }

  tryEnter(
    where: Where,
    request: PlaceRequest,
    snapshot: Snapshot,
  ): EnterResult | Promise<EnterResult> {
    const gate = this.#gateOf(where, snapshot);
    const entering = this.#inner.tryEnter(where, request, snapshot);
    if (!(entering instanceof Promise)) return this.#entered(gate, request, entering);
    gate.asking.add(request);
    return entering
      .finally(() => gate.asking.delete(request))
      .then((entered) => {
        return this.#entered(gate, request, entered);
      });
  }

  async enter(where: Where, wait: PlaceWait): Promise<EnterResult> {
    const gate = this.#gateOf(where, wait.snapshot);
    const { time } = this.#options.world;
    const { keyId, accountId, capacityClass, callId } = wait;
    const since = time.now;
    const waiting = { keyId, accountId, capacityClass, since, upstream: where.upstream.name };
    gate.waits.add(waiting);
    let leftAt: number | undefined;
    wait.signal.addEventListener("abort", () => (leftAt = time.now), { once: true });
    const entered = await this.#inner.enter(where, wait);
    gate.waits.delete(waiting);
    const waitedMs = time.now - since;
    // A request that left still takes the limiter's answer, to return a granted place.
    const askingMs = this.#options.limiter.longestAnswerMs + leastMs;
    if (waitedMs > wait.waitMs + askingMs) {
      this.#wrong(callId, `waited ${waitedMs} of ${wait.waitMs} ms`);
    }
    if (leftAt !== undefined && leftAt + askingMs < time.now) {
      this.#wrong(callId, `stayed in the queue ${time.now - leftAt} ms after its caller left`);
    }
    if ("place" in entered && waitedMs > 0) {
      this.#waited += 1;
      this.#checkOrder(gate, waiting, callId);
    }
    return this.#entered(gate, wait, entered);
  }

  requestPlaces: CapacityGate["requestPlaces"] = (upstream, terms) =>
    this.#inner.requestPlaces(upstream, terms);

  draining: CapacityGate["draining"] = (upstream) => this.#inner.draining(upstream);

  #entered(gate: Gate, request: PlaceRequest, entered: EnterResult): EnterResult {
    if (!("place" in entered)) {
      this.#checkBusy(gate, request);
      return entered;
    }
    count(gate, request, 1);
    this.#checkBounds(gate, request);
    return { place: this.#watch(gate, request, entered.place) };
  }

  #watch(gate: Gate, request: PlaceRequest, place: Place): Place {
    let isHeld = true;
    return {
      waitedMs: place.waitedMs,
      position: place.position,
      settle: (tokens) => place.settle(tokens),
      extend: (wanted) => place.extend(wanted),
      tryOpen: () => place.tryOpen(),
      whenOpen: (wait) => place.whenOpen(wait),
      close: () => place.close(),
      leave: () => {
        if (isHeld) count(gate, request, -1);
        isHeld = false;
        place.leave();
      },
    };
  }

  /**
   * Within one account and class at one upstream, and with a guarantee within one key, calls are
   * served in the order of their arrival.
   */
  #checkOrder(gate: Gate, served: Wait, callId: string): void {
    // A call is not in the queue before the limiter has answered.
    const queuedBefore = served.since - this.#options.limiter.longestAnswerMs - leastMs;
    for (const other of gate.waits) {
      const isProvisioned = served.capacityClass === "provisioned";
      const isSame = isProvisioned
        ? other.keyId === served.keyId
        : other.accountId === served.accountId;
      const isAlike =
        isSame &&
        other.capacityClass === served.capacityClass &&
        (isProvisioned || other.upstream === served.upstream);
      if (isAlike && other.since < queuedBefore) {
        this.#wrong(callId, `overtook somebody in the queue of ${gate.name}`);
      }
    }
  }

  #checkBounds(gate: Gate, { callId, capacityClass }: PlaceRequest): void {
    const { world, keys } = this.#options;
    const isProvisioned = capacityClass === "provisioned";
    if (gate.pool?.kind === "dedicated" && !isProvisioned) {
      this.#wrong(callId, `${capacityClass} got into ${gate.name}, which is dedicated`);
    }
    if (world.time.now - keys.changedAt < changeGraceMs) return;
    const held = heldAt(gate);
    if (held > gate.places()) this.#wrong(callId, `${held} are at ${gate.name}`);
    const open = held - (gate.held.get("provisioned") ?? 0);
    const openPlaces = this.#openPlaces(gate);
    if (!isProvisioned && open > openPlaces) {
      const text = `${open} of ${openPlaces} without a guarantee are at ${gate.name}`;
      violate(world, "P2", text, callId);
    }
  }

  /** P1: a call within a guarantee is delayed only by other guarantees and their places. */
  #checkBusy(gate: Gate, { callId, keyId, capacityClass }: PlaceRequest): void {
    const { world, keys } = this.#options;
    if (capacityClass !== "provisioned") return;
    const waiting = [...gate.waits].filter((wait) => wait.capacityClass === "provisioned");
    // One more may be about to get its place from the queue.
    const held = heldAt(gate) + gate.asking.size + 1;
    const ownPlaces = this.#ownPlaces(gate, keys.unitsOf(gate.pool?.name ?? "", keyId));
    const isOwed = (gate.heldByKey.get(keyId) ?? 0) < ownPlaces;
    const hasChanged = world.time.now - keys.changedAt < changeGraceMs;
    if (isOwed && !hasChanged && !waiting.some((wait) => wait.keyId === keyId)) {
      const text = `a place of ${ownPlaces} that ${keyId} is owed at ${gate.name} was not there`;
      violate(world, "P1", text, callId);
    }
    const isFull = held + this.#unusedPlaces(gate) >= gate.places();
    if (waiting.length > 0 || isFull || hasChanged) return;
    violate(world, "P1", `${gate.name} was busy with ${held - 1} places held`, callId);
  }

  /** Guaranteed places that are unused. Independent of the arithmetic that it checks. */
  #unusedPlaces(gate: Gate): number {
    const { pool } = gate;
    if (pool === undefined) return 0;
    let unused = 0;
    for (const [keyId, units] of this.#options.keys.unitsByKey(pool.name)) {
      unused += Math.max(0, this.#ownPlaces(gate, units) - (gate.heldByKey.get(keyId) ?? 0));
    }
    return unused;
  }

  #ownPlaces({ pool }: Gate, units: number): number {
    if (pool?.maxInFlight === undefined) return 0;
    const perPlace = pool.tokensPerMinute / pool.maxInFlight;
    return Math.floor((units * pool.unitTokensPerMinute) / perPlace + leastMs);
  }

  /** Independent of the arithmetic that it checks. */
  #openPlaces({ pool, places }: Gate): number {
    const all = places();
    const sold = pool === undefined ? 0 : this.#options.keys.soldUnits(pool.name);
    if (pool === undefined || sold === 0 || all === Infinity) return all;
    const heldTokens = Math.ceil((sold * pool.unitTokensPerMinute * 60) / 59);
    const share = Math.min(1, heldTokens / pool.tokensPerMinute);
    if (share === 1) return 0;
    return Math.max(all - Math.ceil(all * share), all > 1 ? 1 : 0);
  }

  #gateOf({ target, upstream }: Where, snapshot: Snapshot): Gate {
    const pool = target.pool === undefined ? undefined : snapshot.pools.get(target.pool);
    const name = pool === undefined ? `upstream ${upstream.name}` : `pool ${pool.name}`;
    const known = this.#gates.get(name);
    if (known !== undefined) return known;
    const gate: Gate = {
      name,
      pool,
      places: () =>
        pool === undefined ? this.#options.placesAt(upstream.name) : (pool.maxInFlight ?? Infinity),
      held: new Map(),
      heldByKey: new Map(),
      asking: new Set(),
      waits: new Set(),
    };
    this.#gates.set(name, gate);
    return gate;
  }

  #wrong(callId: string, text: string): void {
    violate(this.#options.world, "places", text, callId);
  }
}

function count(gate: Gate, { capacityClass, keyId }: PlaceRequest, more: number): void {
  gate.held.set(capacityClass, (gate.held.get(capacityClass) ?? 0) + more);
  if (capacityClass !== "provisioned") return;
  gate.heldByKey.set(keyId, (gate.heldByKey.get(keyId) ?? 0) + more);
}

function heldAt({ held }: Gate): number {
  let sum = 0;
  for (const count of held.values()) sum += count;
  return sum;
}
