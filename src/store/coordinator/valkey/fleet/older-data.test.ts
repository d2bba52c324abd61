import { expect, test } from "bun:test";
import fc from "fast-check";
import { copyKeys } from "../../../../../test/support/copy-keys.ts";
import { ManualClock } from "../../../../../test/support/manual-clock.ts";
import { sizeOf } from "../../../../../test/support/requirement.ts";
import { steeredBy } from "../../../../../test/support/steered-valkey.ts";
import { describeWithValkey, valkeyOfTests } from "../../../../../test/support/valkey-server.ts";
import { listOf } from "../connection/list-of.ts";
import type { ValkeyConnection } from "../connection/valkey-connection.ts";
import { fleetScript } from "./fleet-script.ts";

const startMs = 1_000_000;
const lifetimeMs = 5_000;
/** The database of the server's snapshot. */
const savedIn = 1;
const names = ["a", "b", "c"] as const;
type Name = (typeof names)[number];

interface Answered {
  readonly at: number;
  readonly validSince: number;
}

/** Workers that report to a server in virtual time, and what they must notice. */
class Reports {
  readonly #connection: ValkeyConnection;
  readonly #clock = new ManualClock({ monotonicMs: startMs });
  readonly #answered = new Map<Name, Answered>();
  /** Workers with an answered report that the server does not know. */
  #unknown = new Set<Name>();
  /** Those with one that the snapshot does not have. */
  #unsaved = new Set<Name>();
  #saved: { readonly memory: string | undefined; readonly unknown: ReadonlySet<Name> } | undefined;
  #memory: string | undefined;
  #count = 0;

  constructor(connection: ValkeyConnection) {
    this.#connection = connection;
  }

  wait(ms: number): void {
    this.#clock.advance(ms);
  }

  async save(): Promise<void> {
    await copyKeys(this.#connection, { from: 0, to: savedIn });
    this.#saved = { memory: this.#memory, unknown: new Set(this.#unknown) };
    this.#unsaved.clear();
  }

  async goBack(): Promise<void> {
    if (this.#saved === undefined) return;
    await copyKeys(this.#connection, { from: savedIn, to: 0 });
    this.#memory = this.#saved.memory;
    this.#unknown = new Set([...this.#saved.unknown, ...this.#unsaved]);
  }

  /** Returns whether the memory has got a new name, which must be if the report tells of a loss. */
  async report(name: Name): Promise<boolean> {
    this.wait(1);
    this.#count += 1;
    const { at, validSince } = this.#answered.get(name) ?? { at: 0, validSince: 0 };
    const newMemory = `memory ${this.#count}`;
    const reply = await steeredBy(this.#clock, this.#connection).run(
      fleetScript,
      ["sluice:{workers}", "sluice:{workers}:state"],
      [name, String(lifetimeMs), "sluice:joined", "", newMemory, String(at), String(validSince)],
    );
    const [, memory, , valid, now] = listOf(reply);
    this.#answered.set(name, { at: Number(now), validSince: Number(valid) });
    const isNew = memory === newMemory;
    const mustBeNew = this.#memory === undefined || this.#unknown.has(name);
    // A worker that was silent for so long is forgotten, and may have lost less than two seconds.
    const isForgotten = Number(now) - at >= lifetimeMs;
    if (!isForgotten || isNew) expect(isNew).toBe(mustBeNew);
    expect(isNew || memory === this.#memory).toBe(true);
    // All others hear of the loss by the name.
    if (isNew) this.#unknown.clear();
    this.#memory = String(memory);
    this.#unknown.delete(name);
    this.#unsaved.add(name);
    return isNew;
  }
}

describeWithValkey(() => {
  const valkey = valkeyOfTests();
  const start = async (): Promise<Reports> => {
    await valkey.connection.send("any", "FLUSHALL", []);
    return new Reports(valkey.connection);
  };

  test("a worker that starts before the others report hides no loss from them", async () => {
    const reports = await start();
    await reports.report("a");
    await reports.save();
    for (let seconds = 0; seconds < 6; seconds += 1) {
      reports.wait(1_000);
      await reports.report("a");
    }
    await reports.goBack();
    expect(await reports.report("c")).toBe(false);
    expect(await reports.report("a")).toBe(true);
  });

  test("a worker whose reports the snapshot has hides no loss from the others", async () => {
    const reports = await start();
    await reports.report("b");
    await reports.report("a");
    await reports.save();
    await reports.report("b");
    reports.wait(6_000);
    await reports.goBack();
    expect(await reports.report("a")).toBe(false);
    expect(await reports.report("b")).toBe(true);
  });

  test("a loss is noticed once", async () => {
    const reports = await start();
    for (const name of names) await reports.report(name);
    await reports.save();
    reports.wait(1_000);
    for (const name of names) await reports.report(name);
    await reports.goBack();
    expect(await reports.report("a")).toBe(true);
    expect([await reports.report("b"), await reports.report("c")]).toEqual([false, false]);
  });

  test("a loss is noticed exactly by workers whose answered reports are not known", async () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(...names) },
      { weight: 3, arbitrary: fc.constantFrom(500, 1_000, 1_999, 2_100, 4_900, 5_100, 20_000) },
      { weight: 1, arbitrary: fc.constant("save" as const) },
      { weight: 1, arbitrary: fc.constant("go-back" as const) },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 5, maxLength: 40, size: "max" }),
        async (steps) => {
          const reports = await start();
          for (const each of steps) {
            if (typeof each === "number") reports.wait(each);
            else if (each === "save") await reports.save();
            else if (each === "go-back") await reports.goBack();
            else await reports.report(each);
          }
        },
      ),
      { numRuns: sizeOf({ quick: 100, all: 1_000, measured: 5_000 }) },
    );
  }, 600_000);
});
