import { expect, test } from "bun:test";
import { Secret } from "./secret.ts";
import { Peppers } from "./peppers.ts";
import { endUserDigests, Pseudonyms } from "./pseudonyms.ts";

const secret = (text: string) => new Secret(`${text} that is long enough for a pepper`);
const first = secret("first");

function pseudonymOf(user: string, accountId = "acct_a", peppers = new Peppers(first)): string {
  return new Pseudonyms(peppers).hide({ user }, accountId, "pseudonym").user;
}

test("a pseudonym is the same in every process and after every restart", () => {
  // Providers know end users by it: a change of the derivation makes all of them new.
  expect(pseudonymOf("jane")).toBe("eu_PJseDyC8AbOez1la");
  expect(pseudonymOf("jane", "acct_a", new Peppers(first, [secret("older")]))).toBe(
    pseudonymOf("jane"),
  );
  expect(pseudonymOf("jane", "acct_a", new Peppers(secret("next"), [first]))).not.toBe(
    pseudonymOf("jane"),
  );
});

test("other accounts and names have others, also of the same letters", () => {
  const all = [
    pseudonymOf("jane"),
    pseudonymOf("jane", "acct_b"),
    pseudonymOf("Jane"),
    pseudonymOf(""),
    pseudonymOf("b\njane", "acct_"),
    pseudonymOf("x".repeat(1_000_000)),
  ];
  expect(new Set(all).size).toBe(all.length);
  for (const each of all) expect(each).toMatch(/^eu_[0-9A-Za-z]{16}$/);
});

test("fields without names, and what else they have, stay as they are", () => {
  const names = new Pseudonyms(new Peppers(first));
  const fields = { user: undefined, temperature: 1 };
  expect(names.hide(fields, "acct_a", "pseudonym")).toBe(fields);
  const named = { ...fields, user: "jane" };
  expect(names.hide(named, "acct_a", "as_sent")).toBe(named);
  const dropped: object = names.hide(named, "acct_a", "none");
  expect(dropped).toEqual({ user: undefined, temperature: 1 });
});

test("an end user and a cache of one name have nothing in common", () => {
  const fields = { user: "jane", promptCacheKey: "jane" };
  const hidden = new Pseudonyms(new Peppers(first)).hide(fields, "acct_a", "pseudonym");
  expect(hidden.promptCacheKey).toMatch(/^pc_[0-9A-Za-z]{16}$/);
  expect(hidden.promptCacheKey.slice(3)).not.toBe(hidden.user.slice(3));
});
test("who was erased is known under each pepper, and written under the first", () => {
  const jane = { accountId: "acct_a", endUser: "jane" };
  const [before] = endUserDigests(new Peppers(secret("first")))(jane);
  const rotated = endUserDigests(new Peppers(secret("next"), [secret("first")]))(jane);
  expect(rotated).toHaveLength(2);
  expect(rotated[1]).toBe(before ?? "");
  expect(endUserDigests(new Peppers(secret("other")))(jane)).not.toContain(before);
});
