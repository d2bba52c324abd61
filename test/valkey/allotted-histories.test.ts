import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import type { Place } from "../../src/admission/capacity/place.ts";
import { startProcess, type AllottedProcess } from "../support/allotted-world.ts";
import { runsOf } from "../support/requirement.ts";
import { describeWithValkey, startValkey, type ValkeyServer } from "../support/valkey-server.ts";

/** A step of a history, at one of three gateways. */
interface Step {
  readonly at: number;
  readonly does: "enter" | "wait" | "buy" | "leave" | "pause" | "restart";
  readonly account: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  at: fc.integer({ min: 0, max: 2 }),
  does: fc.constantFrom(
    "enter",
    "enter",
    "wait",
    "wait",
    "buy",
    "leave",
    "leave",
    "pause",
    "restart",
  ),
  account: fc.integer({ min: 0, max: 3 }),
});

/** Of 20 places, the key `buyer` has 6 of its own, and calls without a guarantee at most 13. */
const options = { pool: { maxInFlight: 20 }, upstream: 30, units: { buyer: 30 } };
const [limit, openLimit, ownLimit] = [20, 13, 6];

describeWithValkey(() => {
  let server: ValkeyServer;
  beforeAll(async () => {
    server = await startValkey();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("gateways together never hold more places than there are, and lose none", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 120 }), async (steps) => {
        await server.command("FLUSHALL");
        const history = new History();
        await history.begin();
        try {
          for (const each of steps) await history.run(each);
          await history.end();
        } finally {
          await history.stop();
        }
      }),
      { numRuns: runsOf(40), endOnFailure: true },
    );
  });

  /** What three gateways did. */
  class History {
    readonly #gateways: AllottedProcess[] = [];
    readonly #open = new Map<Place, AllottedProcess>();
    readonly #bought = new Map<Place, AllottedProcess>();
    readonly #asking = new Set<Promise<void>>();

    async begin(): Promise<void> {
      for (let at = 0; at < 3; at += 1) this.#gateways.push(await startProcess(server, options));
    }

    async run({ at, does, account }: Step): Promise<void> {
      const gateway = this.#gateways[at];
      if (gateway === undefined) return;
      const accountId = `account ${account}`;
      switch (does) {
        case "enter":
          await this.#note(this.#open, gateway, gateway.enter({ accountId }));
          return;
        case "wait": {
          const asked = gateway.enter({ accountId }, { waitMs: 60_000 });
          const noted = this.#note(this.#open, gateway, asked);
          this.#asking.add(noted);
          void noted.then(() => this.#asking.delete(noted));
          return;
        }
        case "buy":
          await this.#buy(gateway);
          return;
        case "leave":
          this.#leaveOne(account);
          return;
        case "pause":
          await Bun.sleep(account * 4);
          return;
        case "restart":
          await this.#restart(at, gateway);
      }
    }

    /** All calls end; then one gateway can have all places. */
    async end(): Promise<void> {
      const ending = setInterval(() => this.#leaveAll(), 5);
      await Promise.all(this.#asking);
      clearInterval(ending);
      this.#leaveAll();
      const [first] = this.#gateways;
      if (first === undefined) return;
      const wait = { waitMs: 5_000 };
      const asked = Array.from({ length: openLimit }, () => first.enter({}, wait));
      const bought = Array.from({ length: ownLimit }, () => first.enter(buyer, wait));
      const places = await Promise.all([...asked, ...bought]);
      expect(places.every((place) => place !== undefined)).toBe(true);
    }

    async stop(): Promise<void> {
      for (const gateway of this.#gateways) await gateway[Symbol.asyncDispose]();
    }

    async #buy(gateway: AllottedProcess): Promise<void> {
      const isOwn = this.#bought.size < ownLimit;
      const place = await gateway.enter(buyer);
      if (isOwn) expect(place).toBeDefined();
      if (place !== undefined) this.#bought.set(place, gateway);
      this.#check();
    }

    async #note(
      places: Map<Place, AllottedProcess>,
      gateway: AllottedProcess,
      asked: Promise<Place | undefined>,
    ): Promise<void> {
      const place = await asked;
      if (place !== undefined) places.set(place, gateway);
      this.#check();
    }

    #check(): void {
      expect(this.#open.size).toBeLessThanOrEqual(openLimit);
      expect(this.#open.size + this.#bought.size).toBeLessThanOrEqual(limit);
    }

    #leaveOne(which: number): void {
      const held = [...this.#open, ...this.#bought];
      const [place, gateway] = held[which % Math.max(1, held.length)] ?? [];
      if (place !== undefined && gateway !== undefined) this.#leave(place, gateway);
    }

    #leaveAll(): void {
      for (const [place, gateway] of [...this.#open, ...this.#bought]) this.#leave(place, gateway);
    }

    #leave(place: Place, gateway: AllottedProcess): void {
      this.#open.delete(place);
      this.#bought.delete(place);
      gateway.leave(place);
    }

    /** A gateway ends once its calls have, and another takes its place. */
    async #restart(at: number, gateway: AllottedProcess): Promise<void> {
      if (gateway.waiting > 0) return;
      while (gateway.held.size > 0) {
        for (const [place, holder] of [...this.#open, ...this.#bought]) {
          if (holder === gateway) this.#leave(place, gateway);
        }
        await Bun.sleep(1);
      }
      await gateway[Symbol.asyncDispose]();
      this.#gateways[at] = await startProcess(server, options);
    }
  }
});

const buyer = {
  keyId: "buyer",
  accountId: "buyer",
  capacityClass: "provisioned",
  provisionedPool: "shared",
} as const;
