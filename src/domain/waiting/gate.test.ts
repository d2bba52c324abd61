import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import type { CapacityClass } from "../usage/usage.ts";
import { Gate, type Taking, type Turn, Wait, type WaitEnd } from "./gate.ts";

const forever = new AbortController().signal;

/** Slots that the test gives, and how each turn ended. */
class Slots {
  free = 0;
  limit: number;
  readonly clock = new ManualClock();
  readonly held = new Map<string, number>();
  readonly served: TestTurn[] = [];
  readonly gate: Gate;
  /** Turns that may be served. */
  mayTake = (_turn: TestTurn): boolean => true;

  constructor(limit = 1_000, weights: Readonly<Record<string, number>> = {}) {
    this.limit = limit;
    this.gate = new Gate({
      clock: this.clock,
      limit: () => this.limit,
      shares: {
        weightOf: (group) => weights[group] ?? 1,
        heldBy: (group) => this.held.get(group) ?? 0,
      },
    });
  }

  ask(group: string, capacityClass: CapacityClass = "on-demand"): TestTurn {
    const turn = new TestTurn(this, { group, capacityClass });
    Wait.begin([turn], { clock: this.clock, signal: forever, waitMs: 60_000 });
    return turn;
  }

  /** Serves as many; returns who was served. */
  serve(count = Infinity): TestTurn[] {
    const before = this.served.length;
    this.free = count;
    this.gate.serve();
    this.free = 0;
    return this.served.slice(before);
  }
}

class TestTurn implements Turn {
  readonly gate: Gate;
  readonly capacityClass: CapacityClass;
  readonly group: string;
  position = 0;
  wait: Wait | undefined;
  how: WaitEnd | undefined;
  readonly #slots: Slots;

  constructor(slots: Slots, { capacityClass, group }: Pick<Turn, "capacityClass" | "group">) {
    this.gate = slots.gate;
    this.capacityClass = capacityClass;
    this.group = group;
    this.#slots = slots;
  }

  take(): Taking {
    const { held, mayTake, free } = this.#slots;
    if (free === 0) return "stop";
    if (!mayTake(this)) return "next";
    this.#slots.free -= 1;
    held.set(this.group, (held.get(this.group) ?? 0) + 1);
    this.#slots.served.push(this);
    return "taken";
  }

  ended(how: WaitEnd): void {
    this.how = how;
  }
}

const classes = ["provisioned", "spillover", "on-demand"] as const;
const anyTurn = fc.record({
  group: fc.constantFrom("a", "b", "c", "d"),
  capacityClass: fc.constantFrom(...classes),
});

function isGuaranteed({ capacityClass }: Turn): boolean {
  return capacityClass === "provisioned";
}

describe("a gate", () => {
  test("serves calls within guarantees before all others, in order of arrival", () => {
    const slots = new Slots();
    const turns = [
      slots.ask("a"),
      slots.ask("b", "provisioned"),
      slots.ask("a", "spillover"),
      slots.ask("a", "provisioned"),
    ];
    expect(slots.serve().map((turn) => turns.indexOf(turn))).toEqual([1, 3, 0, 2]);
  });

  test("keeps the calls of a group in order of arrival", () => {
    fc.assert(
      fc.property(fc.array(anyTurn, { maxLength: 80 }), (drawn) => {
        const slots = new Slots();
        const turns = drawn.map(({ group, capacityClass }) => slots.ask(group, capacityClass));
        const served = slots.serve();
        expect(served).toHaveLength(turns.length);
        for (const lane of [isGuaranteed, (turn: Turn) => !isGuaranteed(turn)]) {
          for (const group of ["a", "b", "c", "d"]) {
            const isOfGroup = (turn: Turn): boolean => lane(turn) && turn.group === group;
            expect(served.filter(isOfGroup)).toEqual(turns.filter(isOfGroup));
          }
        }
      }),
    );
  });

  test("lets groups take turns, however many calls of one wait", () => {
    const slots = new Slots(2_000);
    for (let count = 0; count < 1_000; count += 1) slots.ask("elephant");
    const mice = [1, 2, 3].map(() => slots.ask("mouse"));
    const served = slots.serve();
    expect(mice.map((mouse) => served.indexOf(mouse))).toEqual([1, 3, 5]);
  });

  test("keeps the turn of a group whose call leaves, and of one that is passed", () => {
    const slots = new Slots();
    const [first, second, other] = [slots.ask("a"), slots.ask("a"), slots.ask("b")];
    first.wait?.end(first, "left");
    slots.mayTake = (turn) => turn === other;
    expect(slots.serve(1)).toEqual([other]);
    slots.ask("b");
    slots.mayTake = () => true;
    expect(slots.serve(1)).toEqual([second]);
  });

  test("never has more waiting in a lane than its limit, and loses no call", () => {
    const step = fc.record({ turn: anyTurn, isServed: fc.boolean(), limit: fc.nat(6) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const slots = new Slots(5);
        const { gate } = slots;
        const turns: TestTurn[] = [];
        for (const { turn, isServed, limit } of steps) {
          // Lowering the limit displaces no call.
          slots.limit = Math.max(slots.limit - 1, limit);
          const before = { open: gate.open.size, guaranteed: gate.guaranteed.size };
          turns.push(slots.ask(turn.group, turn.capacityClass));
          expect(gate.open.size).toBeLessThanOrEqual(Math.max(slots.limit, before.open));
          const guaranteed = Math.max(slots.limit, before.guaranteed);
          expect(gate.guaranteed.size).toBeLessThanOrEqual(guaranteed);
          if (isServed) slots.serve(1);
          for (const capacityClass of classes) {
            const ofClass = turns.filter(
              (one) => one.how === undefined && one.capacityClass === capacityClass,
            );
            expect(gate.count(capacityClass)).toBe(ofClass.length);
          }
        }
        slots.serve();
        for (const { how } of turns) expect(["served", "queue-full"]).toContain(how ?? "waits");
      }),
    );
  });
});

describe("a full queue", () => {
  test("displaces spilled calls first, then calls of the group with most waiting", () => {
    const slots = new Slots(4);
    slots.ask("a");
    const spilled = [slots.ask("a", "spillover"), slots.ask("b", "spillover")];
    slots.ask("a");
    const ofB = slots.ask("b");
    expect(spilled.map(({ how }) => how)).toEqual(["queue-full", undefined]);
    const youngestOfA = slots.ask("a");
    expect(spilled[1]?.how).toBe("queue-full");
    const ofC = slots.ask("c");
    expect(youngestOfA.how).toBe("queue-full");
    expect(slots.ask("a").how).toBe("queue-full");
    expect([ofB.how, ofC.how]).toEqual([undefined, undefined]);
  });

  test("of calls on demand takes no spilled one, and a guarantee displaces no other class", () => {
    const slots = new Slots(2);
    const open = [slots.ask("a"), slots.ask("a")];
    expect(slots.ask("b", "spillover").how).toBe("queue-full");
    const guaranteed = [1, 2, 3].map(() => slots.ask("b", "provisioned").how);
    expect(guaranteed).toEqual([undefined, undefined, "queue-full"]);
    expect(open.map(({ how }) => how)).toEqual([undefined, undefined]);
  });

  test("of spilled calls gives a group without any its share", () => {
    const slots = new Slots(3);
    const many = [1, 2, 3].map(() => slots.ask("a", "spillover"));
    expect(slots.ask("b", "spillover").how).toBeUndefined();
    expect(many.map(({ how }) => how)).toEqual([undefined, undefined, "queue-full"]);
    expect(slots.ask("a", "spillover").how).toBe("queue-full");
  });

  test("with a limit of 0 lets no call wait", () => {
    const slots = new Slots(0);
    for (const capacityClass of classes) {
      expect(slots.ask("a", capacityClass).how).toBe("queue-full");
    }
  });
});

describe("calls within guarantees", () => {
  const weights = { small: 1, large: 10, none: 0 };

  function fill(slots: Slots, group: string, count: number): TestTurn[] {
    return Array.from({ length: count }, () => slots.ask(group, "provisioned"));
  }

  test("are served by the weight of their groups, not by waiting calls or order of arrival", () => {
    const slots = new Slots(1_000, weights);
    fill(slots, "small", 400);
    fill(slots, "large", 100);
    slots.serve(55);
    expect(slots.held.get("large")).toBe(50);
  });

  test("take turns, so that one slot is shared as well", () => {
    const slots = new Slots(1_000, weights);
    fill(slots, "small", 400);
    fill(slots, "large", 3);
    const turns: string[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      turns.push(...slots.serve(1).map(({ group }) => group));
      slots.held.clear();
    }
    expect(turns).toEqual(["small", "large", "small", "large"]);
  });

  test("that may not be served delay no other group", () => {
    const slots = new Slots(1_000, weights);
    const [first] = fill(slots, "large", 2);
    const [other] = fill(slots, "small", 2);
    slots.mayTake = ({ group }) => group === "small";
    expect(slots.serve(1)).toEqual(other === undefined ? [] : [other]);
    slots.mayTake = () => true;
    expect(slots.serve(1)).toEqual(first === undefined ? [] : [first]);
  });

  test("displace the youngest of the group with most waiting for its weight", () => {
    const slots = new Slots(5, weights);
    const many = fill(slots, "small", 5);
    expect(slots.ask("large", "provisioned").how).toBeUndefined();
    expect(many[4]?.how).toBe("queue-full");
    for (const group of ["small", "none"]) {
      expect(slots.ask(group, "provisioned").how).toBe("queue-full");
    }
    expect(slots.gate.guaranteed.size).toBe(5);
  });
});
