import { createKeyDigest, type KeyDigest, type Peppers } from "../domain/keys/peppers.ts";
import type { Target } from "../domain/model.ts";
import type { TargetView } from "./target-view.ts";

/** What a session is known by: its id, the caller's name of its cache, or how its prompt begins. */
export type SessionKind = "session" | "prompt_cache_key" | "prefix";

export interface SessionName {
  readonly kind: SessionKind;
  /** The caller's: in no log, row or message. */
  readonly value: string;
}

/** Whose session it is. None is shared between them, whatever callers call it. */
export interface SessionOwner {
  readonly accountId: string;
  readonly environment: string;
  readonly alias: string;
}

/** Calls that gain from the same target, as it has their prompt in its cache. */
export interface Session {
  readonly kind: SessionKind;
  /** 32 bits; the same in all processes. */
  readonly hash: number;
}

/** Longer names are hashed first, so that the cost of a call does not depend on them. */
const longestName = 256;

/** Makes sessions of their names, under a key derived from the first pepper. */
export class Sessions {
  readonly #keyed: KeyDigest;

  constructor({ first }: Pick<Peppers, "first">) {
    this.#keyed = createKeyDigest(first.digest("sessions"));
  }

  of(name: SessionName, owner: SessionOwner): Session {
    return { kind: name.kind, hash: this.#digest(name, owner).readUInt32BE(0) };
  }

  /** What an upstream may know of it: 64 bits, as hex. */
  cacheKey(name: SessionName, owner: SessionOwner): string {
    return this.#digest(name, owner).toString("hex", 0, 8);
  }

  #digest({ kind, value }: SessionName, { accountId, environment, alias }: SessionOwner): Buffer {
    const name = value.length > longestName ? String(Bun.hash.xxHash64(value)) : value;
    return this.#keyed(`${accountId}\n${environment}\n${alias}\n${kind}\n${name}`);
  }
}

/** A target's place among those of its priority, for one session. */
export interface SessionRank {
  readonly kind: SessionKind;
  /** From 1: the target that has the session's cache. */
  readonly rank: number;
  /** By which the ranks are sorted, ascending. */
  readonly draw: number;
  /** Attempts under way in this process. */
  readonly inFlight: number;
  /** With so many in flight, it comes after the next rank. */
  readonly most: number;
}

interface Choice {
  readonly target: Pick<Target, "id" | "priority" | "weight">;
  readonly view: Pick<TargetView, "isOut">;
}

export interface TargetLoad {
  inFlightOf(targetId: string): number;
}

/** Of targets, in their order. Undefined for one that is alone in its priority. */
export type Ranks = readonly (SessionRank | undefined)[];

/**
 * A weighted rendezvous hash (Thaler and Ravishankar 1998): when a target leaves or comes, only its
 * own sessions move, and no process has to remember anything.
 */
export function ranksOf(
  choices: readonly Choice[],
  { kind, hash }: Session,
  load: TargetLoad,
): Ranks {
  const draws: number[] = [];
  const inFlight: number[] = [];
  for (const { target } of choices) {
    draws.push(drawOf(target, hash));
    inFlight.push(load.inFlightOf(target.id));
  }
  return choices.map(({ target: { priority, weight } }, index) => {
    const own = { draw: draws[index] ?? 0, inFlight: inFlight[index] ?? 0 };
    let peers = 0;
    let rank = 1;
    let weights = 0;
    let calls = 1;
    for (let at = 0; at < choices.length; at += 1) {
      const peer = choices[at];
      if (peer === undefined || peer.target.priority !== priority) continue;
      peers += 1;
      if ((draws[at] ?? 0) < own.draw) rank += 1;
      if (peer.view.isOut) continue;
      weights += peer.target.weight;
      calls += inFlight[at] ?? 0;
    }
    if (peers < 2) return undefined;
    const most = Math.max(fewestInFlight, Math.ceil((loadFactor * calls * weight) / weights));
    return { kind, rank, draw: own.draw, inFlight: own.inFlight, most };
  });
}

/** Sorting by it, ascending, is a draw by weight: see `drawKey` of candidates. */
function drawOf({ id, weight }: Choice["target"], hash: number): number {
  // In (0, 1]. The algorithm is a standard's, so releases of the runtime agree.
  return -Math.log((Bun.hash.xxHash32(id, hash) + 1) / 2 ** 32) / weight;
}

/** What a target may have in flight, as a multiple of its share by weight. */
const loadFactor = 1.25;
/** So few are no load: the parallel calls of one agent stay together. */
const fewestInFlight = 4;

export function isLoaded(rank: SessionRank | undefined): boolean {
  return rank !== undefined && rank.inFlight >= rank.most;
}

/** For the explanation of a call's routing. */
export function describeRank(ranked: SessionRank): string {
  const { kind, rank, inFlight, most } = ranked;
  const known = `affinity: ${kind}, rank ${rank}`;
  if (!isLoaded(ranked)) return known;
  return `${known}, yields to load: ${inFlight} calls in flight, at most ${most} by its weight`;
}
