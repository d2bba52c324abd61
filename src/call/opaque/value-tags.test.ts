import { expect, test } from "bun:test";
import fc from "fast-check";
import { testPeppers } from "../../../test/support/test-peppers.ts";
import type { ValueOrigin } from "../../upstreams/adapter.ts";
import { type HolderTags, type ValueHolder, ValueTags } from "./value-tags.ts";

const origin: ValueOrigin = { wire: "messages", model: "claude", account: "a", provesText: true };
const holder: ValueHolder = { origin, accountId: "acct_a" };
const tags = new ValueTags(testPeppers()).of(holder);

function at(other: ValueHolder): HolderTags {
  return new ValueTags(testPeppers()).of(other);
}

test("every value returns byte for byte, with the same tag each time", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string(), (value, text) => {
      const tagged = tags.tag(value, text);
      expect(tagged).toMatch(/^s1\.[\w-]{22}\./);
      expect(tagged).toBe(at(holder).tag(value, text));
      expect(tags.open(tagged, text)).toBe(value);
    }),
  );
});

const others: readonly (readonly [string, ValueHolder])[] = [
  ["account of the gateway", { ...holder, accountId: "acct_b" }],
  ["model", { ...holder, origin: { ...origin, model: "claude-2" } }],
  ["account of the provider", { ...holder, origin: { ...origin, account: "b" } }],
  ["API", { ...holder, origin: { ...origin, wire: "converse" } }],
  // What is moved from one field to the next.
  ["origin", { ...holder, origin: { ...origin, wire: "messagesc", model: "laude" } }],
  ["origin", { accountId: "", origin: { ...origin, account: "aacct_a" } }],
];

test.each(others)("a value is nothing at another %s", (_, other) => {
  const tagged = tags.tag("value", "text");
  expect(at(other).open(tagged, "text")).toBeUndefined();
  expect(tags.open(at(other).tag("value", "text"), "text")).toBeUndefined();
});

test("a changed value, tag or text is refused", () => {
  const tagged = tags.tag("value of the provider", "text");
  for (let index = 0; index < tagged.length; index += 1) {
    const flipped = String.fromCharCode((tagged.codePointAt(index) ?? 0) ^ 1);
    const changed = tagged.slice(0, index) + flipped + tagged.slice(index + 1);
    expect(tags.open(changed, "text")).toBeUndefined();
    expect(tags.open(tagged.slice(0, index), "text")).toBeUndefined();
  }
  for (const added of [`${tagged}=`, ` ${tagged}`, `${tagged} `, tagged.toUpperCase()]) {
    expect(tags.open(added, "text")).toBeUndefined();
  }
  expect(tags.open(tagged, "other text")).toBeUndefined();
  // A value and a text whose border moved.
  expect(tags.open(tags.tag("ab", "c").replace(/ab$/, "a"), "bc")).toBeUndefined();
});

test("a text may change where the origin does not mind", () => {
  const free = at({ ...holder, origin: { ...origin, provesText: false } });
  expect(free.open(free.tag("value", "text"), "")).toBe("value");
});

test("what is no tag is read as such, however long it is", () => {
  const dots = ".".repeat(1_000_000);
  const tagged = tags.tag("value", "");
  const texts = ["", "s1", "s1.", "s1..", "s2.x.y", dots, `s1${dots}`, `s1.${dots}`, tagged + dots];
  const nested = tags.tag(tagged, "");
  for (const text of texts) expect(tags.open(text, "")).toBeUndefined();
  expect(tags.open(nested, "")).toBe(tagged);
});

test("both peppers of a rotation read, the first one writes", () => {
  const old = new ValueTags(testPeppers("old")).of(holder);
  const rotating = new ValueTags(testPeppers("new", "old")).of(holder);
  const renewed = new ValueTags(testPeppers("new")).of(holder);
  const before = old.tag("value", "text");
  const after = rotating.tag("value", "text");
  expect(rotating.open(before, "text")).toBe("value");
  expect(renewed.open(after, "text")).toBe("value");
  expect(renewed.open(before, "text")).toBeUndefined();
  const marked = old.markId("call_1");
  expect(rotating.readId(marked)).toEqual({ id: "call_1", author: "this" });
});

test("a marked id is its origin's again, and another's elsewhere", () => {
  const marked = tags.markId("call_1");
  expect(marked).toMatch(/^call_1__[\w-]{8}$/);
  expect(tags.readId(marked)).toEqual({ id: "call_1", author: "this" });
  for (const [, other] of others) {
    expect(at(other).readId(marked)).toEqual({ id: marked, author: "another" });
  }
});

test("an id without a mark has no author", () => {
  for (const id of ["call_1", "", "call__short", "call_abcdefgh"]) {
    expect(tags.readId(id)).toEqual({ id, author: undefined });
  }
});

test("a mark makes no id too long for another upstream", () => {
  const long = "function-call-18446744073709551615";
  const marked = tags.markId(long);
  const elsewhere = { ...holder, accountId: "acct_b" };
  expect(at(elsewhere).readId(marked)).toEqual({ id: long, author: "another" });
  expect(tags.readId(marked)).toEqual({ id: long, author: "this" });
});
