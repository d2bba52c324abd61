import { expect, test } from "bun:test";
import fc from "fast-check";
import { targetOf } from "../../test/support/pipeline-fixtures.ts";
import { Peppers } from "../domain/keys/peppers.ts";
import { Secret } from "../domain/keys/secret.ts";
import type { Target } from "../domain/model.ts";
import {
  isLoaded,
  ranksOf,
  type Session,
  type SessionOwner,
  Sessions,
  type TargetLoad,
} from "./affinity.ts";

const owner: SessionOwner = {
  accountId: "acct_1",
  environment: "production",
  alias: "alpha-sonnet-4",
};
const idle: TargetLoad = { inFlightOf: () => 0 };

function sessionsOf(pepper: string): Sessions {
  return new Sessions(new Peppers(new Secret(pepper)));
}

function named(value: string, sessions = sessionsOf("a pepper of a test"), of = owner): Session {
  return sessions.of({ kind: "session", value }, of);
}

/** In the order of their ranks, loaded ones last. */
function orderOf(targets: readonly Target[], session: Session, load = idle): readonly string[] {
  const choices = targets.map((target) => ({ target, view: { isOut: false } }));
  const ranks = ranksOf(choices, session, load);
  const keyed = targets.map(({ id }, index) => ({ id, rank: ranks[index] }));
  const keyOf = ({ rank }: (typeof keyed)[number]): number =>
    rank === undefined ? 0 : rank.rank + (isLoaded(rank) ? targets.length : 0);
  return keyed.toSorted((one, other) => keyOf(one) - keyOf(other)).map(({ id }) => id);
}

const pepper = fc.string({ minLength: 16, maxLength: 40 });
const weights = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 2, maxLength: 6 });

test("a session is the same for everybody who has the pepper, and another one for each owner", () => {
  fc.assert(
    fc.property(pepper, fc.string(), (secret, value) => {
      const sessions = sessionsOf(secret);
      const { hash } = named(value, sessions);
      expect(named(value, sessionsOf(secret)).hash).toBe(hash);
      const others = [
        named(value, sessionsOf(`${secret}.`)),
        named(value, sessions, { ...owner, accountId: "acct_2" }),
        named(value, sessions, { ...owner, environment: "staging" }),
        named(value, sessions, { ...owner, alias: "alpha-haiku-3.5" }),
        sessions.of({ kind: "prompt_cache_key", value }, owner),
        named(`${value}.`, sessions),
      ];
      expect(new Set([hash, ...others.map((other) => other.hash)]).size).toBe(7);
    }),
  );
});

test("releases agree on the target of a session", () => {
  const { hash } = named("5f0c1b5e-6d5c-4f0e-9a51-7e1b6f0f8a11");
  const targets = [targetOf("a"), targetOf("b"), targetOf("c"), targetOf("d")];
  expect([hash, orderOf(targets, { kind: "session", hash })]).toEqual([
    1_642_758_374,
    ["a/m", "d/m", "b/m", "c/m"],
  ]);
});

test("names of any length are told apart", () => {
  const long = "s".repeat(20_000);
  expect(named(long).hash).not.toBe(named(`${long}s`).hash);
  expect(named(long).hash).toBe(named("s".repeat(20_000)).hash);
});

test("over the sessions of any installation, targets are first by their weights", () => {
  const count = 3_000;
  fc.assert(
    fc.property(pepper, weights, (secret, values) => {
      const sessions = sessionsOf(secret);
      const targets = values.map((weight, index) => targetOf(`up-${index}`, { weight }));
      const firsts = new Map<string, number>();
      for (let index = 0; index < count; index += 1) {
        const [first = ""] = orderOf(targets, named(`session-${index}`, sessions));
        firsts.set(first, (firsts.get(first) ?? 0) + 1);
      }
      const total = values.reduce((sum, weight) => sum + weight, 0);
      for (const { id, weight } of targets) {
        const share = weight / total;
        // Six standard deviations, which chance does not reach.
        const tolerance = 6 * Math.sqrt(count * share * (1 - share));
        expect(Math.abs((firsts.get(id) ?? 0) - count * share)).toBeLessThan(tolerance);
      }
    }),
    { numRuns: 20 },
  );
});

test("when a target leaves, the sessions of all others stay, and its own go to their next rank", () => {
  fc.assert(
    fc.property(pepper, weights, fc.nat(5), (secret, values, at) => {
      const sessions = sessionsOf(secret);
      const targets = values.map((weight, index) => targetOf(`up-${index}`, { weight }));
      const gone = targets[at % targets.length];
      const rest = targets.filter((target) => target !== gone);
      for (let index = 0; index < 20; index += 1) {
        const session = named(`session-${index}`, sessions);
        const before = orderOf(targets, session).filter((id) => id !== gone?.id);
        expect(orderOf([...rest].toReversed(), session)).toEqual(before);
      }
    }),
  );
});

test("no target takes more than 1.25 of its share of the sessions under way, but for a few", () => {
  const threeWeights = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 3, maxLength: 3 });
  const sessionNames = fc.oneof(
    fc.array(fc.uuid(), { minLength: 20, maxLength: 20 }),
    // A caller that has one session, and floods its target.
    fc.uuid().map((name) => Array<string>(200).fill(name)),
  );
  fc.assert(
    fc.property(pepper, threeWeights, sessionNames, (secret, values, started) => {
      const sessions = sessionsOf(secret);
      const targets = values.map((weight, index) => targetOf(`up-${index}`, { weight }));
      const total = values.reduce((sum, weight) => sum + weight, 0);
      const inFlight = new Map<string, number>();
      const load = { inFlightOf: (id: string) => inFlight.get(id) ?? 0 };
      for (const value of started) {
        const [first = ""] = orderOf(targets, named(value, sessions), load);
        inFlight.set(first, load.inFlightOf(first) + 1);
      }
      for (const { id, weight } of targets) {
        const share = (started.length * weight) / total;
        expect(load.inFlightOf(id)).toBeLessThanOrEqual(Math.max(4, Math.ceil(1.25 * share)));
      }
    }),
    { numRuns: 200 },
  );
});
