import { expect, test } from "bun:test";
import fc from "fast-check";
import { testPeppers } from "../../../test/support/test-peppers.ts";
import type { ValueOrigin } from "../../upstreams/adapter.ts";
import { type ValueHolder, ValueTags } from "./value-tags.ts";

const origin: ValueOrigin = { wire: "messages", model: "claude", account: "a", provesText: true };
const holder: ValueHolder = { origin, accountId: "acct_a" };
const tags = new ValueTags(testPeppers());

function valueOf(tagged: string, text: string, at = holder, by = tags): string | undefined {
  const read = by.read(tagged, text);
  return read?.isFrom(at) === true ? read.value : undefined;
}

test("every value returns byte for byte, with the same tag each time", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string(), (value, text) => {
      const tagged = tags.tag(value, text, holder);
      expect(tagged).toMatch(/^s1\.[\w-]{22}\./);
      expect(tagged).toBe(new ValueTags(testPeppers()).tag(value, text, holder));
      expect(valueOf(tagged, text)).toBe(value);
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
  const tagged = tags.tag("value", "text", holder);
  expect(valueOf(tagged, "text", other)).toBeUndefined();
  expect(valueOf(tags.tag("value", "text", other), "text")).toBeUndefined();
});

test("a changed value, tag or text is refused", () => {
  const tagged = tags.tag("value of the provider", "text", holder);
  for (let index = 0; index < tagged.length; index += 1) {
    const flipped = String.fromCharCode((tagged.codePointAt(index) ?? 0) ^ 1);
    const changed = tagged.slice(0, index) + flipped + tagged.slice(index + 1);
    expect(valueOf(changed, "text")).toBeUndefined();
    expect(valueOf(tagged.slice(0, index), "text")).toBeUndefined();
  }
  for (const added of [`${tagged}=`, ` ${tagged}`, `${tagged} `, tagged.toUpperCase()]) {
    expect(valueOf(added, "text")).toBeUndefined();
  }
  expect(valueOf(tagged, "other text")).toBeUndefined();
  // A value and a text whose border moved.
  expect(valueOf(tags.tag("ab", "c", holder).replace(/ab$/, "a"), "bc")).toBeUndefined();
});

test("a text may change where the origin does not mind", () => {
  const { provesText: _, ...free } = origin;
  const at = { ...holder, origin: free };
  expect(valueOf(tags.tag("value", "text", at), "", at)).toBe("value");
});

test("what is no tag is read as such at once, however long it is", () => {
  const dots = ".".repeat(1_000_000);
  const tagged = tags.tag("value", "", holder);
  const texts = ["", "s1", "s1.", "s1..", "s2.x.y", dots, `s1${dots}`, `s1.${dots}`, tagged + dots];
  const nested = tags.tag(tagged, "", holder);
  const startedAt = performance.now();
  for (const text of texts) expect(valueOf(text, "")).toBeUndefined();
  expect(performance.now() - startedAt).toBeLessThan(500);
  expect(valueOf(nested, "")).toBe(tagged);
});

test("both peppers of a rotation read, the first one writes", () => {
  const old = new ValueTags(testPeppers("old"));
  const rotating = new ValueTags(testPeppers("new", "old"));
  const renewed = new ValueTags(testPeppers("new"));
  const before = old.tag("value", "text", holder);
  const after = rotating.tag("value", "text", holder);
  expect(valueOf(before, "text", holder, rotating)).toBe("value");
  expect(valueOf(after, "text", holder, renewed)).toBe("value");
  expect(valueOf(before, "text", holder, renewed)).toBeUndefined();
  const marked = old.markId("call_1", holder);
  expect(rotating.readId(marked, holder)).toEqual({ id: "call_1", author: "this" });
});

test("a marked id is its origin's again, and another's elsewhere", () => {
  const marked = tags.markId("call_1", holder);
  expect(marked).toMatch(/^call_1__[\w-]{8}$/);
  expect(tags.readId(marked, holder)).toEqual({ id: "call_1", author: "this" });
  for (const [, other] of others) {
    expect(tags.readId(marked, other)).toEqual({ id: marked, author: "another" });
  }
});

test("an id without a mark has no author", () => {
  for (const id of ["call_1", "", "call__short", "call_abcdefgh"]) {
    expect(tags.readId(id, holder)).toEqual({ id, author: undefined });
  }
});

test("a mark makes no id too long for another upstream", () => {
  const long = "function-call-18446744073709551615";
  const marked = tags.markId(long, holder);
  const elsewhere = { ...holder, accountId: "acct_b" };
  expect(tags.readId(marked, elsewhere)).toEqual({ id: long, author: "another" });
  expect(tags.readId(marked, holder)).toEqual({ id: long, author: "this" });
});
