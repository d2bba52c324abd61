import { allotmentLifeMs, type AllotmentWish } from "../../../../src/store/allotments.ts";
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
  readonly is: "wanted" | "free";
  /** Who wants places, or who may get the free ones. */
  readonly processes: readonly string[];
}

export interface ScriptAnswer {
  /** Places and the fair part, -1 while nobody else waits; empty for a wish that comes late. */
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
    const { limit, sequence, used, kept, wanted, wantedFirst, accounts } = wish;
    const fields = this.#fields.size;
    const own = this.#endLate(me, now) ?? newField(me, now);
    if (own.sequence >= sequence) return { reply: [], news: [], fields, scarceDivisions: 0 };
    const others = [...this.#fields.values()].filter((entry) => entry !== own);
    const held = others.reduce((sum, { places }) => sum + places, 0);

    // What is in use stays, even above the limit: calls are never cut.
    const before = own.places;
    own.places = Math.max(used, Math.min(kept, limit - held));
    if (own.places < before) own.since = now;
    const isNews = wanted > own.wanted || now - own.toldAt >= repeatMs;
    Object.assign(own, { wanted, first: wantedFirst, accounts: Math.max(accounts, 1), sequence });
    const among = [...others, own];

    const free = Math.max(0, limit - held - own.places);
    const onTop = { limit, among, isOnTop: true } as const;
    const firsts = divide({ ...onTop, free, wantOf: ({ first }) => first });
    const rest = divide({
      ...onTop,
      free: firsts.left,
      wantOf: (each) => each.wanted - each.first,
    });
    const partOf = (entry: Field): number => partIn(firsts, entry) + partIn(rest, entry);
    let grant = partOf(own);
    // A few more, so that not every call has to ask.
    if (wanted > 0 && grant === wanted) grant += Math.floor(rest.left / (4 * among.length));
    own.places += grant;
    own.wanted = Math.max(0, wanted - grant);
    own.first = Math.min(wantedFirst, own.wanted);
    if (grant > 0) own.since = now;

    let scarceDivisions = (firsts.isScarce ? 1 : 0) + (rest.isScarce ? 1 : 0);
    let fair = -1;
    const waiting = others.filter((entry) => entry.wanted > 0);
    if (waiting.length > 0) {
      const firstsWait = waiting.reduce((sum, { first }) => sum + first, 0);
      const demandOf = (entry: Field): number =>
        entry === own ? used + wanted : entry.places + entry.wanted - entry.first;
      const parts = divide({
        free: Math.max(0, limit - firstsWait),
        limit,
        among,
        wantOf: demandOf,
        isOnTop: false,
      });
      if (parts.isScarce) scarceDivisions += 1;
      fair = partIn(parts, own);
      if (own.places > fair && now - own.since < turnMs) fair = Math.min(own.places, fair + 1);
      if (grant > 0) fair = Math.max(fair, own.places);
    }

    const news: ToldNews[] = [];
    if (own.wanted > 0 && isNews) {
      own.toldAt = now;
      news.push({ is: "wanted", processes: [me] });
    }
    this.#keep(own, now);
    const winners = others.filter((entry) => partOf(entry) > 0).map(({ name }) => name);
    if (own.places < before && winners.length > 0) news.push({ is: "free", processes: winners });
    return { reply: [own.places, fair], news, fields, scarceDivisions };
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
