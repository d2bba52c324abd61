import { expect, test } from "bun:test";
import { inOptions } from "./fields.ts";

test.each([
  [
    "Plan enterprise is custom: each key needs 'limits'.",
    "limits",
    "Plan enterprise is custom: each key needs --requests-per-minute and --tokens-per-minute.",
  ],
  [
    "Invalid value for 'allowed_networks[1]': use an address.",
    "allowed_networks[1]",
    "Invalid value for --networks (no. 2): use an address.",
  ],
  ["Missing required parameter: 'plan'.", "plan", "Missing required option: --plan."],
  [
    "Invalid value for 'limits.tokens_per_minute': too small.",
    "limits.tokens_per_minute",
    "Invalid value for --tokens-per-minute: too small.",
  ],
  ["Invalid value for 'name': too long.", "name", "Invalid value for the name: too long."],
])("%s is told in options", (message, param, told) => {
  expect(inOptions(message, param)).toBe(told);
});

test("a message about no field is unchanged", () => {
  expect(inOptions("There is no key 'plan'.", null)).toBe("There is no key 'plan'.");
});
