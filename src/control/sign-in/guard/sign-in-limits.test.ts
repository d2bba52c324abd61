import { describe, expect, test } from "bun:test";
import { ManualClock } from "../../../../test/support/manual-clock.ts";
import { countedNamesLimit } from "./rate-window.ts";
import { SignInLimits } from "./sign-in-limits.ts";

const hourMs = 3_600_000;

/** Tries as often as the limits allows; the number of tries in each hour. */
function wrongTries(
  limits: SignInLimits,
  clock: ManualClock,
  { hours, ...tries }: { hours: number; each: (turn: number) => PasswordTry },
): readonly number[] {
  const stepMs = 1_000;
  const perHour: number[] = [];
  for (let hour = 0; hour < hours; hour += 1) {
    let taken = 0;
    for (let turn = 0; turn < hourMs / stepMs; turn += 1) {
      if (isLet(limits, tries.each(turn))) taken += 1;
      clock.advance(stepMs);
    }
    perHour.push(taken);
  }
  return perHour;
}

interface PasswordTry {
  readonly address: string;
  readonly email: string;
}

function isLet(limits: SignInLimits, { address, email }: PasswordTry): boolean {
  try {
    limits.takePassword(address, email);
    return true;
  } catch {
    return false;
  }
}

const stranger = { address: "203.0.113.9" };
const ada = "ada@example.com";

describe("one address", () => {
  test("a user is tried 12 times in the first hour, and 4 times in each further one", () => {
    const clock = new ManualClock();
    const limits = new SignInLimits(5, clock);
    const each = () => ({ ...stranger, email: ada });
    const perHour = wrongTries(limits, clock, { hours: 6, each });
    expect(perHour).toEqual([12, 4, 4, 4, 4, 4]);
  });

  test("all users together are tried 32 times in the first hour, and 4 times in each further one", () => {
    const clock = new ManualClock();
    const limits = new SignInLimits(5, clock);
    const each = (turn: number) => ({ ...stranger, email: `user${turn % 500}@example.com` });
    expect(wrongTries(limits, clock, { hours: 4, each })).toEqual([32, 4, 4, 4]);
  });

  test("no hour has more, at any start and with any pauses", () => {
    const clock = new ManualClock();
    const limits = new SignInLimits(5, clock);
    const times: number[] = [];
    let seed = 7;
    for (let turn = 0; turn < 20_000; turn += 1) {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      clock.advance(seed % 997 === 0 ? hourMs + (seed % 1_000_000) : seed % 20_000);
      if (isLet(limits, { ...stranger, email: ada })) times.push(clock.monotonic());
    }
    expect(times.length).toBeGreaterThan(100);
    for (const [index, from] of times.entries()) {
      const within = times.slice(index).filter((at) => at < from + hourMs);
      expect(within.length).toBeLessThanOrEqual(12);
    }
  });

  test("a restart allows only the first tries again", () => {
    const clock = new ManualClock();
    const each = () => ({ ...stranger, email: ada });
    for (let start = 0; start < 3; start += 1) {
      const limits = new SignInLimits(5, clock);
      expect(wrongTries(limits, clock, { hours: 2, each })).toEqual([12, 4]);
    }
  });

  test("addresses of one IPv6 network count together", () => {
    const clock = new ManualClock();
    const limits = new SignInLimits(5, clock);
    const each = (turn: number) => ({
      address: `2001:db8::${turn.toString(16)}`,
      email: ada,
    });
    expect(wrongTries(limits, clock, { hours: 1, each })).toEqual([12]);
  });

  test("concurrent tries are counted before any is compared", () => {
    const limits = new SignInLimits(5, new ManualClock());
    const tries = Array.from({ length: 40 }, () => isLet(limits, { ...stranger, email: ada }));
    expect(tries.filter(Boolean)).toHaveLength(5);
  });
});

test("tries from any number of other addresses do not lock a user out", () => {
  const clock = new ManualClock();
  const limits = new SignInLimits(5, clock);
  for (let turn = 0; turn < 30_000; turn += 1) {
    const address = `198.51.${turn % 100}.${turn % 251}`;
    isLet(limits, { address, email: ada });
    clock.advance(100);
  }
  expect(isLet(limits, { address: "192.0.2.1", email: ada })).toBe(true);
});

test("a right password resets the user's wrong tries, and not those for others", () => {
  const clock = new ManualClock();
  const limits = new SignInLimits(5, clock);
  const own = { ...stranger, email: "eve@example.com" };
  // A user who signs in between tries for other users.
  let taken = 0;
  for (let turn = 0; turn < 500; turn += 1) {
    if (isLet(limits, { ...stranger, email: `user${turn}@example.com` })) taken += 1;
    try {
      limits.takePassword(own.address, own.email)();
    } catch {
      // The address has to wait too.
    }
  }
  expect(taken).toBe(25);
});

test("memory is bounded, and shrinks when tries get fewer", () => {
  const clock = new ManualClock();
  const limits = new SignInLimits(5, clock);
  for (let turn = 0; turn < 2 * countedNamesLimit; turn += 1) {
    const address = `10.${turn >> 16}.${(turn >> 8) & 255}.${turn & 255}`;
    isLet(limits, { address, email: ada });
  }
  expect(limits.size).toBe(countedNamesLimit);
  clock.advance(hourMs);
  for (let turn = 0; turn < countedNamesLimit; turn += 1) {
    isLet(limits, { address: "192.0.2.1", email: `${turn}` });
    clock.advance(900_000);
  }
  expect(limits.size).toBeLessThan(20);
});
