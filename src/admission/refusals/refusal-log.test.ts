import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Refusal, RefusalExplanation } from "../../domain/errors/refusal.ts";
import { RefusalLog } from "./refusal-log.ts";

function refusalOf(at: number, values: Partial<RefusalExplanation> = {}): Refusal {
  return {
    id: `req_${at}`,
    at,
    status: 429,
    code: "rate_limit_exceeded",
    explanation: { rule: "requests_per_minute", summary: "Too many.", ...values },
  };
}

function idsOf(refusals: readonly Refusal[]): readonly string[] {
  return refusals.map(({ id }) => id);
}

function find(log: RefusalLog, id: string): Refusal | undefined {
  return log.list({ id }, 1)[0];
}

test("a refusal is found by its request id, of any caller", () => {
  const log = new RefusalLog();
  const ofKey = refusalOf(1, { keyId: "key_a" });
  const ofStranger = refusalOf(2, { publicId: "aaaaaaaa" });
  const ofNobody = refusalOf(3);
  for (const refusal of [ofKey, ofStranger, ofNobody]) log.record(refusal);
  for (const refusal of [ofKey, ofStranger, ofNobody]) expect(find(log, refusal.id)).toBe(refusal);
  expect(find(log, "req_4")).toBeUndefined();
});

test("lists are newest first, of one key, one account or all", () => {
  const log = new RefusalLog();
  log.record(refusalOf(1, { keyId: "key_a", accountId: "acct_a" }));
  log.record(refusalOf(2, { publicId: "aaaaaaaa" }));
  log.record(refusalOf(3, { keyId: "key_b", accountId: "acct_b" }));
  log.record(refusalOf(4));
  log.record(refusalOf(5, { keyId: "key_a", accountId: "acct_a" }));
  log.record(refusalOf(6, { accountId: "acct_b" }));
  const ids = (filter: Parameters<RefusalLog["list"]>[0], limit = 100) =>
    idsOf(log.list(filter, limit));
  expect(ids({})).toEqual(["req_6", "req_5", "req_4", "req_3", "req_2", "req_1"]);
  expect(ids({}, 2)).toEqual(["req_6", "req_5"]);
  expect(ids({ keyId: "key_a" })).toEqual(["req_5", "req_1"]);
  expect(ids({ accountId: "acct_b" })).toEqual(["req_6", "req_3"]);
  expect(ids({ keyId: "key_a", accountId: "acct_b" })).toEqual([]);
  expect(ids({}, 0)).toEqual([]);
});

test("of each key the last twenty are kept, and one key's many do not push out another's", () => {
  const log = new RefusalLog();
  log.record(refusalOf(0, { keyId: "key_quiet" }));
  for (let at = 1; at <= 15_000; at += 1) log.record(refusalOf(at, { keyId: "key_loud" }));
  expect(log.size).toBe(21);
  expect(find(log, "req_0")?.id).toBe("req_0");
  expect(find(log, "req_14980")).toBeUndefined();
  expect(idsOf(log.list({ keyId: "key_loud" }, 100)).at(-1)).toBe("req_14981");
});

test("a burst of one cause does not push out the others of its key", () => {
  const log = new RefusalLog();
  const of = { keyId: "key_a" };
  log.record(refusalOf(1, { ...of, rule: "model_unknown" }));
  log.record(refusalOf(2, { ...of, rule: "invalid_request", param: "max_tokens" }));
  for (let at = 3; at <= 1_000; at += 1) {
    log.record(refusalOf(at, at % 2 === 0 ? of : { ...of, rule: "invalid_request", param: "n" }));
  }
  expect(log.size).toBe(20);
  expect(idsOf(log.list({}, 100)).slice(-3)).toEqual(["req_983", "req_2", "req_1"]);
});

test("unknown callers with made-up ids do not push out refusals of keys", () => {
  const log = new RefusalLog();
  log.record(refusalOf(0, { keyId: "key_a" }));
  for (let at = 1; at <= 12_000; at += 1) log.record(refusalOf(at, { publicId: `id${at}` }));
  expect(find(log, "req_0")?.id).toBe("req_0");
  expect(log.size).toBe(2_001);
  expect(find(log, "req_12000")?.id).toBe("req_12000");
});

test("unknown callers do not push out refusals of signed-in users", () => {
  const log = new RefusalLog();
  log.record(refusalOf(0, { accountId: "acct_a" }));
  for (let at = 1; at <= 100; at += 1) log.record(refusalOf(at));
  expect(find(log, "req_0")?.id).toBe("req_0");
  expect(log.size).toBe(21);
});

test("a repeated id replaces the first one", () => {
  const log = new RefusalLog();
  log.record(refusalOf(1, { keyId: "key_a" }));
  log.record(refusalOf(2, { keyId: "key_a" }));
  log.record(refusalOf(2, { keyId: "key_a", summary: "Again." }));
  expect([log.size, find(log, "req_2")?.explanation.summary]).toEqual([2, "Again."]);
  expect(idsOf(log.list({}, 100))).toEqual(["req_2", "req_1"]);
});

describe("any sequence of refusals", () => {
  const subject = fc.oneof(
    fc.record({
      keyId: fc.constantFrom("key_a", "key_b", "key_c", "key_d"),
      rule: fc.constantFrom("requests_per_minute", "model_unknown"),
      param: fc.constantFrom("model", "n"),
    }),
    fc.constantFrom("a", "b", "c").map((name) => ({ publicId: name })),
    fc.constant({}),
  );

  test("the log is the same as a plain list with the same bounds", () => {
    fc.assert(
      fc.property(fc.array(subject, { maxLength: 200 }), (subjects) => {
        const bounds = {
          keys: { perSubject: 3, limit: 8 },
          strangers: { perSubject: 3, limit: 2 },
        };
        const log = new RefusalLog(bounds);
        const all = subjects.map((values, index) => refusalOf(index, values));
        for (const refusal of all) log.record(refusal);
        const expected = [
          ...plainList(all.filter(isOfKey), bounds.keys),
          ...plainList(
            all.filter((one) => !isOfKey(one)),
            bounds.strangers,
          ),
        ].toSorted((one, other) => other.at - one.at);
        expect(idsOf(log.list({}, 100))).toEqual(idsOf(expected));
        expect(log.size).toBe(expected.length);
        for (const refusal of all) {
          expect(find(log, refusal.id)).toBe(expected.includes(refusal) ? refusal : undefined);
        }
      }),
    );
  });
});

function isOfKey({ explanation }: Refusal): boolean {
  return explanation.keyId !== undefined;
}

/** The same rules, as filters over all refusals at each step. */
function plainList(
  refusals: readonly Refusal[],
  { perSubject, limit }: { perSubject: number; limit: number },
): readonly Refusal[] {
  const subjectOf = ({ explanation }: Refusal): string =>
    explanation.keyId ?? explanation.publicId ?? "";
  const causeOf = ({ explanation: { rule, param } }: Refusal): string => `${rule} ${param}`;
  let kept: readonly Refusal[] = [];
  for (const refusal of refusals) {
    const own = kept.filter((one) => subjectOf(one) === subjectOf(refusal));
    const byCause = Map.groupBy([...own, refusal], causeOf);
    const most = Math.max(...Array.from(byCause.values(), (of) => of.length));
    const [often] = own.filter((one) => byCause.get(causeOf(one))?.length === most);
    const surplus = own.length >= perSubject ? often : undefined;
    const rest = kept.filter((one) => one !== surplus);
    kept = [...rest.slice(rest.length >= limit ? 1 : 0), refusal];
  }
  return kept;
}
