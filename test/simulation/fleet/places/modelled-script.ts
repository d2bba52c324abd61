import {
  allotmentLifeMs,
  type AllotmentNews,
  type AllotmentWish,
} from "../../../../src/store/allotments.ts";
import { divide, type Parts } from "./divide.ts";

const wishLifeMs = 1_500;
const repeatMs = 400;
const turnMs = 200;

/** What the server remembers of a process. */
interface Field {
  readonly name: string;
  places: number;
  wanted: number;
  first: number;
  accounts: number;
  since: number;
  sequence: number;
  toldAt: number;
  wishEnd: number;
  lifeEnd: number;
}

export interface ToldNews {
  readonly is: AllotmentNews["is"];
  /** Who may get the free places, or who tells the others something. */
  readonly processes: readonly string[];
}

export interface ScriptAnswer {
  /**
   * Places, the fair part, -1 while nobody else waits, and 1 if what the process had was not known;
   * empty for a wish that comes late.
   */
  readonly reply: readonly number[];
  readonly news: readonly ToldNews[];
  /** What the time of the execution depends on. */
  readonly fields: number;
  readonly scarceDivisions: number;
}

/** One bound in the memory of the server: the script of `allot-script.ts`, line by line. */
export class ModelledScript {
  readonly #fields = new Map<string, Field>();

  /** Places that all processes have, also those that have died, until their allotments end. */
  heldAt(now: number): number {
    let held = 0;
    for (const { places, lifeEnd } of this.#fields.values()) if (lifeEnd > now) held += places;
    return held;
  }

  flush(): void {
    this.#fields.clear();
  }

  run(me: string, wish: Omit<AllotmentWish, "bound">, now: number): ScriptAnswer {
    const { limit, sequence, used, kept, wanted, wantedFirst, accounts, allotted } = wish;
    const fields = this.#fields.size;
    const own = this.#endLate(me, now) ?? newField(me, now);
    if (own.sequence >= sequence) return { reply: [], news: [], fields, scarceDivisions: 0 };
    // What it has was lost, and perhaps what others have: all tell that before any gets more.
    const isLost = own.sequence < 0 && allotted > 0;
    const others = [...this.#fields.values()].filter((entry) => entry !== own);
    const held = others.reduce((sum, { places }) => sum + places, 0);
    const among = [...others, own];
    const told = among.filter((entry) => entry.wanted > 0).map(({ toldAt }) => toldAt);
    // What is in use stays, even above the limit: calls are never cut.
    const places = Math.max(used, Math.min(kept, limit - held));
    // Then others may get more than before, and those hear of it.
    const isGiving = places < own.places || wanted < own.wanted;
    const earlier = isGiving ? divideFree(among, limit) : undefined;
    if (places < own.places) own.since = now;
    Object.assign(own, { places, wanted, first: wantedFirst });
    Object.assign(own, { accounts: Math.max(accounts, 1), sequence });
    const free = divideFree(among, limit);
    let grant = isLost ? 0 : free.partOf(own);
    // A few more, so that not every call has to ask.
    const hasAll = wanted > 0 && grant === wanted && !isLost;
    if (hasAll) grant += Math.floor(free.left / (4 * among.length));
    own.places += grant;
    own.wanted = Math.max(0, wanted - grant);
    own.first = Math.min(wantedFirst, own.wanted);
    if (grant > 0) own.since = now;

    let scarceDivisions = free.scarceDivisions + (earlier?.scarceDivisions ?? 0);
    let fair = -1;
    const waiting = others.filter((entry) => entry.wanted > 0);
    if (waiting.length > 0) {
      const firstsWait = waiting.reduce((sum, { first }) => sum + first, 0);
      const demandOf = (entry: Field): number =>
        entry === own ? used + wanted : entry.places + entry.wanted - entry.first;
      const parts = divide({
        free: Math.max(0, limit - firstsWait),
        among,
        wantOf: demandOf,
        isOnTop: false,
      });
      if (parts.isScarce) scarceDivisions += 1;
      fair = partIn(parts, own);
      const isItsTurn = now - own.since < turnMs * Math.max(1, fair);
      if (own.places > fair && isItsTurn) fair = Math.min(own.places, fair + 1);
      if (grant > 0) fair = Math.max(fair, own.places);
    }

    const news: ToldNews[] = [];
    // All have heard it from one that still waits, and give back what they do not use.
    if (own.wanted > 0 && now - Math.max(0, ...told) >= repeatMs) {
      own.toldAt = now;
      news.push({ is: "wanted", processes: [me] });
    }
    if (isLost && held === 0) news.push({ is: "lost", processes: [me] });
    this.#keep(own, now);
    if (earlier !== undefined) {
      const winners = others.filter((entry) => free.partOf(entry) > earlier.partOf(entry));
      if (winners.length > 0) news.push({ is: "free", processes: winners.map(({ name }) => name) });
    }
    const left = Math.max(0, wish.limit - held - own.places);
    const reply = [own.places, fair, isLost ? 1 : 0, left];
    return { reply, news, fields, scarceDivisions };
  }

  /** Forgets what has ended. */
  #endLate(me: string, now: number): Field | undefined {
    for (const field of this.#fields.values()) {
      if (field.lifeEnd <= now) this.#fields.delete(field.name);
      else if (field.wishEnd <= now) Object.assign(field, { wanted: 0, first: 0 });
    }
    return this.#fields.get(me);
  }

  #keep(own: Field, now: number): void {
    if (own.places === 0 && own.wanted === 0) {
      this.#fields.delete(own.name);
      return;
    }
    own.wishEnd = now + wishLifeMs;
    own.lifeEnd = now + allotmentLifeMs;
    this.#fields.set(own.name, own);
  }
}

/** What each would get of what is free, and what would be left. */
function divideFree(among: readonly Field[], limit: number) {
  const held = among.reduce((sum, { places }) => sum + places, 0);
  const onTop = { among, isOnTop: true } as const;
  const wantOf = ({ first }: Field): number => first;
  const firsts = divide({ ...onTop, free: Math.max(0, limit - held), wantOf });
  const restOf = ({ wanted, first }: Field): number => wanted - first;
  const rest = divide({ ...onTop, free: firsts.left, wantOf: restOf });
  return {
    partOf: (entry: Field): number => partIn(firsts, entry) + partIn(rest, entry),
    left: rest.left,
    scarceDivisions: (firsts.isScarce ? 1 : 0) + (rest.isScarce ? 1 : 0),
  };
}

function newField(name: string, now: number): Field {
  return {
    name,
    places: 0,
    wanted: 0,
    first: 0,
    accounts: 1,
    since: now,
    sequence: -1,
    toldAt: 0,
    wishEnd: 0,
    lifeEnd: 0,
  };
}

function partIn(parts: Parts<Field>, entry: Field): number {
  return parts.got.get(entry) ?? 0;
}
