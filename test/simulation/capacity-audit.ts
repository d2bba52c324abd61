import type { Pool } from "../../src/domain/limits/capacity.ts";
import type { CapacityClass } from "../../src/domain/usage/usage.ts";
import {
  classAt,
  type CapacityGate,
  type EnterResult,
  type Place,
  type PlaceAsk,
  type PlaceCandidate,
  type PlaceHolder,
} from "../../src/admission/capacity/place.ts";
import { changeGraceMs, type KeyRegister } from "./key-register.ts";
import type { SharedLimiter } from "./limiter.ts";
import { violate, type World } from "./world.ts";

/** A call at one of its candidates. */
interface Asking extends PlaceHolder {
  readonly callId: string;
  readonly gate: Gate;
  readonly target: string;
  readonly since: number;
  /** Whether it waits in other queues too, and goes on there if this one displaces it. */
  readonly isElsewhere: boolean;
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
  readonly waits: Set<Asking>;
  /** When its queue may have displaced a call. */
  fullAt: number;
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

  enter(ask: PlaceAsk): EnterResult | Promise<EnterResult> {
    const { request, candidates, snapshot, waitMs, signal } = ask;
    const { world } = this.#options;
    const { time } = world;
    const since = time.now;
    const isElsewhere = candidates.length > 1;
    const asking = candidates.map((candidate): Asking => {
      const gate = this.#gateOf(candidate, snapshot);
      const { callId, keyId } = request;
      const capacityClass = classAt(request, candidate.target.pool);
      return {
        callId,
        keyId,
        capacityClass,
        gate,
        target: candidate.target.id,
        since,
        isElsewhere,
      };
    });
    const entering = this.#inner.enter(ask);
    if (!(entering instanceof Promise)) {
      for (const [index] of entering.refused.entries()) this.#checkBusy(asking[index]);
      return this.#entered(asking, entering);
    }
    let leftAt: number | undefined;
    signal.addEventListener("abort", () => (leftAt = time.now), { once: true });
    for (const each of asking) {
      (waitMs > 0 ? each.gate.waits : each.gate.asking).add(each);
      if (each.gate.waits.size > world.scenario.routing.queueLimit) each.gate.fullAt = since;
    }
    const forget = (): void => {
      for (const each of asking) {
        each.gate.waits.delete(each);
        each.gate.asking.delete(each);
      }
    };
    return entering.finally(forget).then((entered) => {
      const waitedMs = time.now - since;
      // Who asked the limiter takes its answer, to give back what it may have got.
      const askingMs = this.#longestAskMs(asking);
      if (waitedMs > waitMs + askingMs) {
        this.#wrong(request.callId, `waited ${waitedMs} of ${waitMs} ms`);
      }
      if (leftAt !== undefined && leftAt + askingMs < time.now) {
        this.#wrong(request.callId, `stayed ${time.now - leftAt} ms after its caller left`);
      }
      const served = "place" in entered && waitMs > 0 ? asking[entered.at] : undefined;
      if (served !== undefined && waitedMs > 0) {
        this.#waited += 1;
        this.#checkOrder(served, askingMs);
      }
      // Why others refused it is long ago.
      if (!("place" in entered) && waitMs > 0) this.#checkBusy(asking[0]);
      return this.#entered(asking, entered);
    });
  }

  /** The store is asked at each candidate, and once more from the queue. */
  #longestAskMs({ length }: readonly Asking[]): number {
    return (length + 1) * this.#options.limiter.longestAnswerMs + leastMs;
  }

  requestPlaces: CapacityGate["requestPlaces"] = (upstream, terms) =>
    this.#inner.requestPlaces(upstream, terms);

  draining: CapacityGate["draining"] = (upstream) => this.#inner.draining(upstream);

  #entered(asking: readonly Asking[], entered: EnterResult): EnterResult {
    const held = "place" in entered ? asking[entered.at] : undefined;
    if (!("place" in entered) || held === undefined) return entered;
    count(held, 1);
    this.#checkBounds(held);
    return { ...entered, place: this.#watch(held, entered.place) };
  }

  #watch(held: Asking, place: Place): Place {
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
        if (isHeld) count(held, -1);
        isHeld = false;
        place.leave();
      },
    };
  }

  /** Within one key and class nobody gets a place at a target before who came for it earlier. */
  #checkOrder(served: Asking, askingMs: number): void {
    // Until the limiter has answered nobody is in the queue yet.
    const queuedBefore = served.since - askingMs;
    for (const other of served.gate.waits) {
      const isSame =
        other.keyId === served.keyId &&
        other.capacityClass === served.capacityClass &&
        (served.capacityClass === "provisioned" || other.target === served.target);
      const isDisplaced = other.isElsewhere && other.since <= served.gate.fullAt;
      if (isSame && !isDisplaced && other.since < queuedBefore) {
        this.#wrong(served.callId, `overtook somebody in the queue of ${served.gate.name}`);
      }
    }
  }

  #checkBounds({ gate, callId, capacityClass }: Asking): void {
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

  /** P1: within a guarantee, only others within theirs can be in the way, and places owed to them. */
  #checkBusy(refused: Asking | undefined): void {
    const { world, keys } = this.#options;
    if (refused?.capacityClass !== "provisioned") return;
    const { gate, callId, keyId } = refused;
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

  #gateOf({ target }: PlaceCandidate, snapshot: PlaceAsk["snapshot"]): Gate {
    const pool = target.pool === undefined ? undefined : snapshot.pools.get(target.pool);
    const name = pool === undefined ? `upstream ${target.upstream}` : `pool ${pool.name}`;
    const known = this.#gates.get(name);
    if (known !== undefined) return known;
    const gate: Gate = {
      name,
      pool,
      places: () =>
        pool === undefined
          ? this.#options.placesAt(target.upstream)
          : (pool.maxInFlight ?? Infinity),
      held: new Map(),
      heldByKey: new Map(),
      asking: new Set(),
      waits: new Set(),
      fullAt: Number.NEGATIVE_INFINITY,
    };
    this.#gates.set(name, gate);
    return gate;
  }

  #wrong(callId: string, text: string): void {
    violate(this.#options.world, "places", text, callId);
  }
}

function count({ gate, capacityClass, keyId }: Asking, more: number): void {
  gate.held.set(capacityClass, (gate.held.get(capacityClass) ?? 0) + more);
  if (capacityClass !== "provisioned") return;
  gate.heldByKey.set(keyId, (gate.heldByKey.get(keyId) ?? 0) + more);
}

function heldAt({ held }: Gate): number {
  let sum = 0;
  for (const count of held.values()) sum += count;
  return sum;
}
