import { describe, expect, test } from "bun:test";
import { testPeppers } from "../../test/support/test-peppers.ts";
import { openAnswer, sealAnswer } from "./seal.ts";
import type { KeptAnswer } from "./answer.ts";
import { digestOfBody, nameCall, type RepeatableCall, type RequestNames } from "./request-names.ts";

const peppers = testPeppers();
const random = (target: Uint8Array): Uint8Array => crypto.getRandomValues(target);
const answer: KeptAnswer = {
  headers: { "content-type": "application/json" },
  text: '{"content":"Grüße, 世界 👋"}',
};

function namesOf(values: Partial<RepeatableCall> = {}, pepper = peppers): RequestNames {
  return nameCall(callOf(values), pepper);
}

function callOf(values: Partial<RepeatableCall>): RepeatableCall {
  return {
    keyId: "key_a",
    idempotencyKey: "order-17",
    endpoint: "chat",
    capacity: "auto",
    bodyDigest: "00",
    ...values,
  };
}

describe("the names of a call", () => {
  test("are the same for the same call, and contain neither its key nor its body", async () => {
    expect(namesOf()).toEqual(namesOf());
    const { id, requestDigest } = namesOf({
      bodyDigest: await digestOfBody(Buffer.from("a prompt")),
    });
    expect(`${id} ${requestDigest}`).toMatch(/^[0-9a-f]{64} [0-9a-f]{64}$/);
    const plain = new Bun.CryptoHasher("sha256").update("a prompt").digest("hex");
    expect(requestDigest).not.toContain(plain);
  });

  test("another key or another Idempotency-Key is another call", () => {
    const ids = [
      namesOf(),
      namesOf({ keyId: "key_b" }),
      namesOf({ idempotencyKey: "order-18" }),
      // Adjacent parts must not run together.
      namesOf({ keyId: "key_aorder", idempotencyKey: "-17" }),
    ].map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
  });

  test("another body, endpoint or capacity is another request of the same name", () => {
    const all = [
      namesOf(),
      namesOf({ bodyDigest: "01" }),
      namesOf({ endpoint: "embeddings" }),
      namesOf({ capacity: "on-demand-only" }),
    ];
    expect(new Set(all.map(({ id }) => id)).size).toBe(1);
    expect(new Set(all.map(({ requestDigest }) => requestDigest)).size).toBe(4);
  });

  test("another pepper gives other names", () => {
    const other = testPeppers("other");
    expect(namesOf({}, other).id).not.toBe(namesOf().id);
  });
});

test("after a rotation a call has its previous names as older ones", () => {
  const { older } = nameCall(callOf({}), testPeppers("new", "test"));
  expect(older.map(({ id, requestDigest }) => [id, requestDigest])).toEqual([
    [namesOf().id, namesOf().requestDigest],
  ]);
});

describe("a sealed answer", () => {
  test("opens to the sealed answer, and does not contain its text", () => {
    const sealed = sealAnswer(answer, namesOf(), random);
    expect(openAnswer(sealed, namesOf())).toEqual(answer);
    const seen = Buffer.from(sealed).toString("latin1");
    expect(seen).not.toContain("content");
    expect(seen).not.toContain("order-17");
  });

  test("is another text each time", () => {
    const [one, other] = [1, 2].map(() => sealAnswer(answer, namesOf(), random));
    expect(one).not.toEqual(other);
  });

  test.each([
    ["another Idempotency-Key", { idempotencyKey: "order-18" }],
    ["another key", { keyId: "key_b" }],
    ["another request", { bodyDigest: "02" }],
  ])("does not open for %s", (_, values) => {
    const sealed = sealAnswer(answer, namesOf(), random);
    expect(() => openAnswer(sealed, namesOf(values))).toThrow();
  });

  test("does not open with any one bit changed", () => {
    const sealed = sealAnswer(answer, namesOf(), random);
    for (let index = 0; index < sealed.byteLength; index += 1) {
      const changed = Uint8Array.from(sealed);
      changed[index] = (changed[index] ?? 0) ^ 1;
      expect(() => openAnswer(changed, namesOf())).toThrow();
    }
  });
});
