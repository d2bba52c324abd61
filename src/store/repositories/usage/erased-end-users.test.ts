import { expect, test } from "bun:test";
import { Peppers } from "../../../domain/keys/peppers.ts";
import { Secret } from "../../../domain/keys/secret.ts";
import { endUserDigests } from "./erased-end-users.ts";

test("who was erased is known under each pepper, and written under the first", () => {
  const secret = (text: string) => new Secret(`${text} that is long enough for a pepper`);
  const jane = { accountId: "acct_a", endUser: "jane" };
  const [before] = endUserDigests(new Peppers(secret("first")))(jane);
  const rotated = endUserDigests(new Peppers(secret("next"), [secret("first")]))(jane);
  expect(rotated).toHaveLength(2);
  expect(rotated[1]).toBe(before ?? "");
  expect(endUserDigests(new Peppers(secret("other")))(jane)).not.toContain(before);
});
